package cmd_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNoContextIsUsedAfterItsEnd checks that no code uses an ended context in place of the caller's. The context of an
// errgroup ends when Wait returns: it must have a different name than the context from which it is made, and must not
// be used after Wait. A context must not be used after its cancel function was called in the same block.
func TestNoContextIsUsedAfterItsEnd(t *testing.T) {
	for _, top := range []string{"agent", "artifact", "grains", "packaging", "state", "cmd"} {
		err := filepath.WalkDir("../"+top, func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || testSupport(path) {
				return err
			}
			found, err := endedContexts(path)
			for _, f := range found {
				t.Errorf("%s:%s", strings.TrimPrefix(filepath.ToSlash(path), "../"), f)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestEndedContextsAreFound checks which code TestNoContextIsUsedAfterItsEnd finds, and which it does not.
func TestEndedContextsAreFound(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.go")
	source := `package x
func shadowed(ctx C) error { group, ctx := errgroup.WithContext(ctx); group.Go(ctx); return group.Wait() }
func assigned(ctx C) error { var group G; group, ctx = errgroup.WithContext(ctx); return group.Wait() }
func afterWait(ctx C) { group, within := errgroup.WithContext(ctx); err := group.Wait(); use(within, err) }
func afterCancel(ctx C) { inner, cancel := context.WithCancel(ctx); use(inner); cancel(); use(inner) }
func sameName(ctx C) { ctx, cancel := context.WithTimeout(ctx, time.Second); use(ctx); cancel(); use(ctx) }
func named(ctx C) { group, within := errgroup.WithContext(ctx); group.Go(within); err := group.Wait(); use(ctx, err) }
func deferred(ctx C) { ctx, cancel := context.WithTimeout(ctx, time.Second); defer cancel(); use(ctx) }
func inFunction(ctx C) { ctx, cancel := context.WithCancel(ctx); go func() { cancel() }(); use(ctx) }
func onError(ctx C) { inner, cancel := context.WithCancel(ctx); if bad() { cancel(); return }; use(inner); cancel() }
func asked(ctx C) error { inner, cancel := context.WithCancel(ctx); use(inner); cancel(); return context.Cause(inner) }
func inner(ctx C) { { ctx, cancel := context.WithCancel(ctx); use(ctx); cancel() }; use(ctx) }
`
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := endedContexts(file)
	if err != nil {
		t.Fatal(err)
	}
	var functions []string
	for _, f := range found {
		_, after, _ := strings.Cut(f, ": ")
		name, _, _ := strings.Cut(after, ":")
		functions = append(functions, name)
	}
	want := []string{"shadowed", "assigned", "afterWait", "afterCancel", "sameName"}
	if !slices.Equal(functions, want) {
		t.Errorf("found %v, want %v", found, want)
	}
}

// endedContexts lists, with line, function and mistake, the places where a file uses contexts that have ended.
func endedContexts(path string) (found []string, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, 0)
	if err != nil {
		return nil, err
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			var list []ast.Stmt
			switch n := n.(type) {
			case *ast.BlockStmt:
				list = n.List
			case *ast.CaseClause:
				list = n.Body
			case *ast.CommClause:
				list = n.Body
			}
			for i, s := range list {
				if what := endsBefore(s, list[i+1:]); what != "" {
					found = append(found, fmt.Sprintf("%d: %s: %s", files.Position(s.Pos()).Line, f.Name.Name, what))
				}
			}
			return true
		})
	}
	return found, nil
}

// endsBefore returns the mistake in a statement that makes a context, given the statements that follow it in its block.
func endsBefore(s ast.Stmt, rest []ast.Stmt) string {
	assign, ok := s.(*ast.AssignStmt)
	if !ok || len(assign.Rhs) != 1 || len(assign.Lhs) != 2 {
		return ""
	}
	call, ok := assign.Rhs[0].(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return ""
	}
	first, second := nameOf(assign.Lhs[0]), nameOf(assign.Lhs[1])
	switch what := callee(call); {
	case what == "errgroup.WithContext" && second == nameOf(call.Args[0]):
		return "the group's context has the name of its parent; call it within: Wait ends it"
	case what == "errgroup.WithContext" && usedAfter(rest, first+".Wait", second):
		return second + " is used after " + first + ".Wait(), which ends it"
	case strings.HasPrefix(what, "context.With") && usedAfter(rest, second, first):
		return first + " is used after " + second + "(), which ends it"
	}
	return ""
}

// usedAfter reports whether statements of one block use a context after one of them has called the function that ends
// it. Calling Err of the context is allowed.
func usedAfter(list []ast.Stmt, ends, context string) bool {
	ended := false
	for _, s := range list {
		if ended && context != "_" && mentions(s, context) {
			return true
		}
		ended = ended || endsIn(s, ends)
	}
	return false
}

// endsIn reports whether a statement calls a function itself, and not in a branch of it, a deferred call or a function
// literal.
func endsIn(s ast.Stmt, name string) (calls bool) {
	switch s.(type) {
	case *ast.AssignStmt, *ast.ExprStmt, *ast.IfStmt:
	default:
		return false
	}
	ast.Inspect(s, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit, *ast.BlockStmt:
			return false
		case *ast.CallExpr:
			calls = calls || callee(n) == name
		}
		return true
	})
	return calls
}

// mentions reports whether a statement uses a variable, other than to call Err of a context.
func mentions(s ast.Stmt, name string) (uses bool) {
	ast.Inspect(s, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			what := callee(n)
			if what == name+".Err" || what == "context.Cause" {
				return false
			}
		case *ast.SelectorExpr:
			uses = uses || nameOf(n.X) == name
			return nameOf(n.X) == ""
		case *ast.Ident:
			uses = uses || n.Name == name
		}
		return true
	})
	return uses
}

func nameOf(e ast.Expr) string {
	if id, ok := e.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// callee returns the function that is called, with the name before its dot.
func callee(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return nameOf(f.X) + "." + f.Sel.Name
	}
	return ""
}
