package report_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
)

// constants returns the exported constants of a source file that the function wanted selects, with their values.
func constants(t *testing.T, file string, wanted func(name, kind string) bool) map[string]string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, decl := range f.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			v := spec.(*ast.ValueSpec)
			kind, _ := v.Type.(*ast.Ident)
			name := ""
			if kind != nil {
				name = kind.Name
			}
			if lit, ok := v.Values[0].(*ast.BasicLit); ok && v.Names[0].IsExported() && wanted(v.Names[0].Name, name) {
				text := lit.Value
				if unquoted, err := strconv.Unquote(text); err == nil {
					text = unquoted
				}
				found[v.Names[0].Name] = text
			}
		}
	}
	if len(found) == 0 {
		t.Fatalf("%s has no such constants", file)
	}
	return found
}

// TestDocumentationHasAllThatAReportShows compares docs/deploy.md with the code: exit codes, outcomes, and the values
// and keys of reports and of the ledger.
func TestDocumentationHasAllThatAReportShows(t *testing.T) {
	data, err := os.ReadFile("../../docs/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Join(strings.Fields(string(data)), " ")
	_, rest, found := strings.Cut(page, "### Outcomes and exit codes")
	table, _, ok := strings.Cut(rest, "###")
	_, after, ok2 := strings.Cut(rest, "### What a report holds")
	keys, _, ok3 := strings.Cut(after, "## At once")
	if !found || !ok || !ok2 || !ok3 {
		t.Fatal("docs/deploy.md has no such sections")
	}
	codes := constants(t, "../exit/exit.go", func(string, string) bool { return true })
	for name, code := range codes {
		if !strings.Contains(table, "| "+code+" | ") {
			t.Errorf("exit code %s (%s) is not in the table", code, name)
		}
	}
	// two more rows: the head, and the outcome refused
	if rows := strings.Count(table, " | `") + strings.Count(table, " | none"); rows != len(codes)+2 {
		t.Errorf("the table has %d rows for %d codes", rows-2, len(codes))
	}
	for name, outcome := range constants(t, "report.go", func(_, kind string) bool { return kind == "Outcome" }) {
		if !strings.Contains(table, "| `"+outcome+"` |") {
			t.Errorf("outcome %s (%s) is not in the table", outcome, name)
		}
	}
	values := map[string]map[string]string{
		"report.go": constants(t, "report.go", func(name, kind string) bool {
			return kind == "FaultOf" || strings.HasPrefix(name, "Step")
		}),
		"../service/service.go":  constants(t, "../service/service.go", func(string, string) bool { return true }),
		"../service/evidence.go": constants(t, "../service/evidence.go", func(string, string) bool { return true }),
	}
	for file, all := range values {
		for name, v := range all {
			if !strings.Contains(keys, "`"+v+"`") {
				t.Errorf("%q (%s of %s) is not in docs/deploy.md", v, name, file)
			}
		}
	}
	for _, kind := range []reflect.Type{reflect.TypeFor[report.Report](), reflect.TypeFor[ledger.Ledger]()} {
		for i := range kind.NumField() {
			key, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
			if key != "" && key != "-" && !strings.Contains(keys, "`"+key+"`") {
				t.Errorf("key %s of a %s is not in docs/deploy.md", key, kind.Name())
			}
		}
	}
}
