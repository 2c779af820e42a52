package arch

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gonbatch/tests/page"
)

var (
	codeSpan   = regexp.MustCompile("`([^`\n]+)`")
	longFlag   = regexp.MustCompile(`(?:^|\s)(--[a-z][a-z-]*)`)
	subcommand = regexp.MustCompile(`^submit ([a-z]+)( [a-z]+)?(?:\s|$)`)
	magicWord  = regexp.MustCompile(`^%{1,2}[a-z_]+`)
	configName = regexp.MustCompile(`^(?:[a-z]+(?:_[a-z]+)+|(?:checkpoint|early_stopping|schedule)\.[a-z_]+)$`)
	apiName    = regexp.MustCompile(`^([a-z]+)\.([A-Z]\w*)(?:\.([A-Z]\w*))?(?:\(.*\))?$`)
)

// namesOfOthers are names that look like ours, but belong to others.
var namesOfOthers = []string{"jupyter_kernel_test", "t.Parallel"}

// variables maps names of variables in the pages to their types.
var variables = map[string]string{"world": "distributed.World", "t": "trainer.Trainer"}

// translations are pages of tables whose first column has names of others.
var translations = []string{"docs/lightning.md", "docs/from-other-tools.md"}

// TestNamesInDocs checks that the commands, flags, magics, settings and Go names in the pages
// exist. The lists of commands, flags, magics and settings are generated from the code.
func TestNamesInDocs(t *testing.T) {
	root := sourceRoot(t)
	reference, magics := page.Read(t, "docs/reference.md"), page.Read(t, "docs/magics.md")
	names := exportedNames(t, root)
	for _, name := range page.All(t) {
		if strings.HasPrefix(name, "docs/adr/") {
			continue // They describe the time of the decision.
		}
		for i, line := range strings.Split(page.Read(t, name), "\n") {
			if slices.Contains(translations, name) {
				_, line, _ = strings.Cut(line, " | ")
			}
			for _, match := range codeSpan.FindAllStringSubmatch(line, -1) {
				if what := unknownName(match[1], reference, magics, names); what != "" {
					t.Errorf("%s:%d: there is no %s", name, i+1, what)
				}
			}
		}
	}
}

// unknownName returns the name in a span of code that does not exist; "" if all do.
func unknownName(span, reference, magics string, names map[string]bool) string {
	if strings.HasPrefix(span, "submit ") || strings.HasPrefix(span, "--") {
		own, _, _ := strings.Cut(span, " -- ")
		for _, flag := range longFlag.FindAllStringSubmatch(own, -1) {
			if !hasWord(reference, flag[1]) {
				return "flag " + flag[1]
			}
		}
		if match := subcommand.FindStringSubmatch(own); match != nil && !strings.Contains(reference, "### submit "+match[1]+"\n") &&
			!strings.Contains(reference, "### submit "+match[1]+match[2]+"\n") {
			return "command submit " + match[1] + match[2]
		}
	}
	if magic := magicWord.FindString(span); magic != "" && !hasWord(magics, magic) {
		return "magic " + magic
	}
	if slices.Contains(namesOfOthers, span) {
		return ""
	}
	if configName.MatchString(span) && !hasWord(reference, span) && !hasWord(magics, "%"+span) {
		return "setting " + span
	}
	if match := apiName.FindStringSubmatch(span); match != nil {
		from := match[1]
		if of, ok := variables[from]; ok {
			from = of
		}
		full := strings.TrimSuffix(from+"."+match[2]+"."+match[3], ".")
		if names[strings.Split(from, ".")[0]] && !names[full] {
			return full
		}
	}
	return ""
}

func TestUnknownName(t *testing.T) {
	reference, magics := page.Read(t, "docs/reference.md"), page.Read(t, "docs/magics.md")
	names := exportedNames(t, sourceRoot(t))
	for span, want := range map[string]string{
		"submit --nodes 2": "", "submit --node 2": "flag --node", "--follow": "", "--foll": "flag --foll", "submit -F a.ipynb -- --lr 1": "",
		"submit logs -f": "", "submit log -f": "command submit log", "submit kernel warm": "", "submit a.ipynb": "",
		"%keep x": "", "%keeps x": "magic %keeps", "%%bash": "", "max_epochs": "", "max_epoch": "setting max_epoch", "schedule.kind": "", "schedule.kinds": "setting schedule.kinds",
		"world.Loader": "", "world.IsMain()": "", "world.Load": "distributed.World.Load", "trainer.Config.MaxEpochs": "", "trainer.Fit": "trainer.Fit",
		"t.Fit(ctx, train, val)": "", "t.Fits(ctx)": "trainer.Trainer.Fits",
		"time.Duration": "",
	} {
		if got := unknownName(span, reference, magics, names); got != want {
			t.Errorf("%q: %q, want %q", span, got, want)
		}
	}
}

// TestLayersInDocs compares the table of layers in docs/architecture.md with the layers that
// TestImports checks.
func TestLayersInDocs(t *testing.T) {
	text := page.Read(t, "docs/architecture.md")
	for _, l := range layers {
		if slices.Contains(l.packages, root) {
			continue // The root package has no code of its own.
		}
		row := regexp.MustCompile(`(?m)^\| ` + l.name + ` \|([^|]+)\|([^|]+)\|$`).FindStringSubmatch(text)
		if row == nil {
			t.Errorf("the table has no layer %s", l.name)
			continue
		}
		if got, want := packagesIn(row[1]), sorted(l.packages); !slices.Equal(got, want) {
			t.Errorf("%s: the table has the packages %q, want %q", l.name, got, want)
		}
		mayImport, _, _ := strings.Cut(row[2], "; never")
		if got, want := packagesIn(mayImport), sorted(l.mayImport); !slices.Equal(got, want) {
			t.Errorf("%s: by the table it may import %q, want %q", l.name, got, want)
		}
	}
}

// packagesIn returns the names in a cell of the table, where "`x/...`" and "`x`" are the same.
func packagesIn(cell string) []string {
	var names []string
	for _, match := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
		names = append(names, strings.TrimSuffix(match[1], "/..."))
	}
	return sorted(names)
}

// sorted returns the names once each, without the root package, which has no name in the table.
func sorted(names []string) []string {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == root })
	slices.Sort(names)
	return slices.Compact(names)
}

func hasWord(text, word string) bool {
	return regexp.MustCompile(regexp.QuoteMeta(word) + `(?:[^a-z_-]|$)`).MatchString(text)
}

// exportedNames returns the packages of the repository, by the last element of their paths, and
// what they export: "data", "data.Dataset", "data.Dataset.Len". Packages with the same name are
// merged.
func exportedNames(t *testing.T, root string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, top := range []string{"checkpoint", "data", "distributed", "kernel", "logger", "models", "submit", "trainer", "slurmtmpl"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				addExported(t, names, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return names
}

func addExported(t *testing.T, names map[string]bool, dir string) {
	t.Helper()
	pkg := documented(t, dir)
	if pkg == nil {
		return
	}
	names[pkg.Name] = true
	add := func(elements ...string) { names[strings.Join(elements, ".")] = true }
	addValues := func(groups ...[]*doc.Value) {
		for _, value := range slices.Concat(groups...) {
			for _, name := range value.Names {
				add(pkg.Name, name)
			}
		}
	}
	addValues(pkg.Consts, pkg.Vars)
	functions := pkg.Funcs
	for _, typ := range pkg.Types {
		add(pkg.Name, typ.Name)
		addValues(typ.Consts, typ.Vars)
		functions = append(functions, typ.Funcs...)
		for _, m := range typ.Methods {
			add(pkg.Name, typ.Name, m.Name)
		}
		for _, field := range fieldsOf(typ) {
			add(pkg.Name, typ.Name, field)
		}
	}
	for _, f := range functions {
		add(pkg.Name, f.Name)
	}
}

// documented returns the documentation of the package in a folder, or nil if there is none.
func documented(t *testing.T, dir string) *doc.Package {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, file)
	}
	if len(parsed) == 0 {
		return nil
	}
	pkg, err := doc.NewFromFiles(fset, parsed, dir)
	if err != nil {
		t.Fatal(err)
	}
	return pkg
}

// fieldsOf returns the fields of a struct or the methods of an interface.
func fieldsOf(typ *doc.Type) (names []string) {
	for _, spec := range typ.Decl.Specs {
		spec, ok := spec.(*ast.TypeSpec)
		if !ok || spec.Name.Name != typ.Name {
			continue
		}
		var list *ast.FieldList
		switch s := spec.Type.(type) {
		case *ast.StructType:
			list = s.Fields
		case *ast.InterfaceType:
			list = s.Methods
		default:
			continue
		}
		for _, field := range list.List {
			for _, name := range field.Names {
				names = append(names, name.Name)
			}
		}
	}
	return names
}
