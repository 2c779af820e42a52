package input

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gonbatch/submit/export/nbcell"
)

// TrainerPackage is the package whose Config defines flags.
const TrainerPackage = "gonbatch/trainer"

// isAddFlags reports whether a call looks like AddFlags of trainer's Config on the program's own
// flags.
func isAddFlags(call *ast.CallExpr) bool {
	return nbcell.Method(call) == "AddFlags" && takesCommandLine(call)
}

// takesCommandLine reports whether a call gets the program's own flags.
func takesCommandLine(call *ast.CallExpr) bool {
	return slices.ContainsFunc(call.Args, func(arg ast.Expr) bool { return types.ExprString(arg) == "flag.CommandLine" })
}

// trainerFlags returns the flags that trainer's Config.AddFlags defines. It reads them from
// Config's struct tags in the source, because submission packages never import training packages.
func trainerFlags(sourceDir string) []Flag {
	structs := map[string]*ast.StructType{}
	files, _ := filepath.Glob(filepath.Join(sourceDir, "trainer", "*.go")) // The pattern is valid.
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil || strings.HasSuffix(name, "_test.go") {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if s, ok := spec.Type.(*ast.StructType); ok {
					structs[spec.Name.Name] = s
				}
			}
			return true
		})
	}
	flags := []Flag{{Name: "config", Type: "string", Usage: "YAML file with the training's configuration"}}
	return append(flags, taggedFlags(structs, "Config", "")...)
}

// taggedFlags returns the flags of a struct's fields that have a YAML name.
func taggedFlags(structs map[string]*ast.StructType, name, prefix string) (flags []Flag) {
	if structs[name] == nil {
		return nil
	}
	for _, field := range structs[name].Fields.List {
		if field.Tag == nil {
			continue
		}
		text, _ := strconv.Unquote(field.Tag.Value) // The parser has read it.
		tag := reflect.StructTag(text)
		kind := types.ExprString(field.Type)
		switch key := tag.Get("yaml"); {
		case key == "":
		case structs[kind] != nil:
			flags = append(flags, taggedFlags(structs, kind, prefix+key+".")...)
		default:
			flags = append(flags, Flag{Name: prefix + key, Type: kind, Usage: tag.Get("help")})
		}
	}
	return flags
}
