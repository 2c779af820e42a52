package export

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"gonbatch/internal/gocell"
)

// FuzzShellScript: the script of a shell command is the notebook's command, passed on as plain
// text, and four lines of ours. Nothing else in the notebook (names, titles, ids) is ever read as
// shell code. The scripts are parsed, not run.
func FuzzShellScript(f *testing.F) {
	for i, text := range []string{
		"echo $(id) `id` 'a' \"b\" ; rm x", "\necho hi\nEND_OF_CELL\nid\n", "cat -n 'a b' \"c $(id)\"\nbody $x\nEND_OF_CELL",
		"-a \"a'b $(id) ${HOME}/~\"\nEND_OF_CELL_\n'\n", "~/x$A${B}$(id)\n", "\\", "'\n'", "0",
	} {
		f.Add(i, text, "id", "# heading")
	}
	f.Fuzz(func(t *testing.T, kind int, text, id, heading string) {
		if all := text + "\n" + id + "\n" + heading; !utf8.ValidString(all) || strings.ContainsRune(all, utf8.RuneError) {
			return // Text from JSON is valid, and the parser treats the replacement character as an error.
		}
		first := [...]string{"!", "%%bash", "%%script ", "%%writefile ", "%%sh"}[(kind%5+5)%5]
		nb := cells(heading, first+text, "%%\nprintln(1)")
		nb.Path, nb.Cells[0].Type, nb.Cells[1].ID = id+".ipynb", "markdown", id
		module, err := FromNotebook(nb, Options{SourceDir: sourceDir(t)})
		if err != nil {
			return
		}
		for name, data := range module.Files {
			if strings.HasSuffix(name, ".sh") {
				checkScript(t, first, nb.Cells[1].Source, string(data))
			}
		}
	})
}

// checkScript checks a script's structure against its cell.
func checkScript(t *testing.T, first, cell, script string) {
	t.Helper()
	parsed, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil {
		t.Fatalf("%v\n%s", err, script)
	}
	stmts := parsed.Stmts
	if want := 4; len(stmts) != want && (first != "%%writefile " || len(stmts) != want+1) {
		t.Fatalf("%d statements:\n%s", len(stmts), script)
	}
	if strings.HasPrefix(first, "%%writefile") {
		checkPlain(t, stmts[1], true, script)
	}
	ours := stmts[len(stmts)-3:]
	if got := printed(ours[0]) + ";" + printed(ours[2]); got != "code=$?;exit $code" {
		t.Errorf("the script ends by %q:\n%s", got, script)
	}
	checkPlain(t, ours[1], false, script)
	checkPlain(t, stmts[0], first == "%%writefile ", script)
	if first == "!" {
		checkLine(t, stmts[0], cell, script)
	}
	if strings.HasPrefix(first, "%%") {
		checkBody(t, stmts[0], cell, script)
	}
}

// checkPlain checks that a statement expands nothing except $code and $?, and variables in a file
// name if variables is set.
func checkPlain(t *testing.T, stmt *syntax.Stmt, variables bool, script string) {
	t.Helper()
	syntax.Walk(stmt, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ArithmExp, *syntax.ExtGlob, *syntax.BraceExp:
			t.Errorf("the notebook's text is read as %T:\n%s", n, script)
		case *syntax.ParamExp:
			own := n.Param.Value == "code" || n.Param.Value == "?"
			if !own && (!variables || n.Exp != nil || n.Slice != nil || n.Repl != nil || n.Index != nil || n.Length || n.Excl) {
				t.Errorf("the notebook's text is read as %s:\n%s", printed(n), script)
			}
		case *syntax.Lit:
			if strings.ContainsAny(strings.ReplaceAll(n.Value, `\`+"\n", ""), "*?`") && n.Value != "?" {
				t.Errorf("%q would be a pattern:\n%s", n.Value, script)
			}
		case *syntax.Redirect:
			// A quoted delimiter makes a here-document plain text: don't walk it.
			if n.Op == syntax.Hdoc && printed(n.Word)[0] != '\'' {
				t.Errorf("a here-document whose text is expanded:\n%s", script)
			}
			return n.Op != syntax.Hdoc
		}
		return true
	})
}

// checkLine checks that a ! line is one argument of bash, as in GoNB.
func checkLine(t *testing.T, stmt *syntax.Stmt, cell, script string) {
	t.Helper()
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) != 3 || len(stmt.Redirs) > 0 {
		t.Fatalf("a ! line is not a call of bash:\n%s", script)
	}
	calls, got := gocell.Parse(cell).Calls, plainText(t, call.Args[2])
	if !slices.ContainsFunc(calls, func(c gocell.Call) bool { return c.Mark == '!' && c.Text == got }) {
		t.Errorf("bash gets %q, which is none of the cell's commands %+v:\n%s", got, calls, script)
	}
}

// checkBody checks that a cell's body is the input of its command, byte for byte.
func checkBody(t *testing.T, stmt *syntax.Stmt, cell, script string) {
	t.Helper()
	for _, redirect := range stmt.Redirs {
		if redirect.Op != syntax.Hdoc {
			continue
		}
		end := strings.Trim(printed(redirect.Word), "'")
		_, text, _ := strings.Cut(script, "<< '"+end+"'\n")
		text, _, _ = strings.Cut("\n"+text, "\n"+end+"\n")
		_, body, ok := strings.Cut(strings.ReplaceAll(cell, "\r\n", "\n"), "\n")
		if want := "\n" + body; ok && strings.TrimLeft(text, "\n") != strings.TrimLeft(want, "\n") {
			t.Errorf("the input is %q, want %q:\n%s", text, want, script)
		}
		return
	}
	t.Errorf("the command has no input:\n%s", script)
}

// plainText returns the text of a word without expansions, unquoted.
func plainText(t *testing.T, word *syntax.Word) string {
	t.Helper()
	var b strings.Builder
	var add func(parts []syntax.WordPart)
	add = func(parts []syntax.WordPart) {
		for _, part := range parts {
			switch p := part.(type) {
			case *syntax.Lit:
				b.WriteString(p.Value)
			case *syntax.SglQuoted:
				b.WriteString(p.Value)
			case *syntax.DblQuoted:
				add(p.Parts)
			default:
				t.Fatalf("a word has %T", p)
			}
		}
	}
	add(word.Parts)
	return b.String()
}

func printed(node syntax.Node) string {
	var b strings.Builder
	if err := syntax.NewPrinter().Print(&b, node); err != nil {
		return err.Error()
	}
	return b.String()
}
