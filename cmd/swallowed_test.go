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

// TestNoErrorOfALookupIsSwallowed checks that no code treats an unreadable file as absent: a lookup of a path whose
// error is dropped, or only compared with nil. Only "does not exist" means absent; package walk has Found, Exists and
// Glob for that. filepath.Glob is forbidden, since it returns no errors of reading.
func TestNoErrorOfALookupIsSwallowed(t *testing.T) {
	allowed := map[string]string{}
	for why, places := range reasons() {
		for _, place := range places {
			allowed[place] = why
		}
	}
	used := map[string]bool{}
	for _, top := range []string{"agent", "artifact", "grains", "packaging", "state", "cmd"} {
		err := filepath.WalkDir("../"+top, func(path string, d os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || testSupport(path) {
				return err
			}
			name := strings.TrimPrefix(filepath.ToSlash(path), "../")
			found, err := swallowed(path)
			for _, f := range found {
				place := name + ":" + f.function
				used[place] = true
				if allowed[place] == "" {
					t.Errorf("%s:%d: %s: the error of %s is reduced to yes or no: use walk.Found, or name every error", name, f.line,
						f.function, f.call)
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	for place := range allowed {
		if !used[place] {
			t.Errorf("%s swallows no error any more: remove it from the list", place)
		}
	}
}

// reasons lists the places that may reduce the error of a lookup to yes or no, as file:function, by reason.
func reasons() map[string][]string {
	return map[string][]string{
		"a file with other content is written again, and the write reports the error": {
			"agent/linking/compare.go:namesLead", "agent/identity.go:copyConfiguration", "agent/link/link.go:Named",
			"agent/link/link.go:name", "agent/link/link.go:point",
			"agent/link/link.go:Name", "agent/project/sync.go:wire", "agent/records/registry.go:refreshEntryCopy",
			"agent/records/who.go:saveWho", "artifact/durable/durable.go:MkdirAll",
			"artifact/trust/pin.go:checkPin", "packaging/builder/system.go:there",
		},
		"a word of a command that cannot be looked up, such as a long script, names no file": {
			"agent/site/programs.go:isFile", "grains/ec2/account/trust.go:checkProcess",
		},
		"the file is fetched again": {"agent/fetch/delta.go:halfArrived", "artifact/trust/pages.go:page"},
		"the processes may have ended": {
			"artifact/process/group.go:outside", "artifact/process/list.go:processes",
			"artifact/process/list.go:readProcess", "artifact/process/tree.go:hasVariable",
			"artifact/process/tree.go:groupsOf", "artifact/process/adopt.go:servesFiles", "artifact/process/adopt.go:namesOf",
			"agent/self/systemctl.go:systemctls", "agent/lock/sharers.go:Sharers",
			"agent/lock/removed.go:ofRemoved", "agent/lock/removed.go:heldIn", "agent/self/systemctl.go:parentOf",
			"agent/self/systemctl.go:arguments", "state/host/processes/sockets.go:Sockets",
			"state/host/processes/sockets.go:hold",
			"state/host/packages/client.go:processOf", "state/host/processes/processes.go:Of",
			"state/host/processes/processes.go:userOf", "state/host/processes/processes.go:CgroupOf",
		},
		"it looks at this process or machine in /proc or /sys, which may not be mounted": {
			"artifact/process/group.go:newGroup", "artifact/process/group.go:sweepGroups", "artifact/process/group.go:groupDir",
			"artifact/process/tree.go:Enclose", "artifact/process/adopt.go:Adopt",
			"state/host/packages/client.go:ownUnit", "state/host/temp.go:in", "state/host/tree.go:below",
			"grains/ec2/ec2.go:Likely",
			"agent/failure/noexec.go:mountOf", "artifact/walk/lease.go:leaseTime",
		},
		"the result only changes a message": {
			"agent/doctor/onhost/control.go:control", "agent/releases/requirements.go:statesOfBase",
			"agent/lock/lock.go:read", "state/host/packages/lock.go:processName", "packaging/builder/system.go:maker",
			"artifact/store/dir/dir.go:notDirectory", "artifact/store/dir/lock.go:holder",
			"artifact/walk/lease.go:holder", "artifact/publish/keyring/keyring.go:lookAt",
			"artifact/publish/keyring/list.go:kindOf",
		},
		"an unreadable file is refused, or kept secret": {
			"state/pillar/external/command.go:checkTrusted",
			"agent/records/repair.go:fine", "artifact/durable/scratch.go:own", "artifact/manifest/audit.go:Holds",
			"agent/outgoing/readable.go:readableByAll", "agent/outgoing/readable.go:readableWay",
			"agent/service/whose.go:rootsFile", "artifact/walk/groups.go:isStaffs",
		},
		"the run has read the link before, or reports the error there": {
			"agent/records/restore.go:Concerns", "agent/inspect/units.go:linksTo", "agent/inspect/units.go:CurrentOf",
			"agent/inspect/units.go:LinkedAt",
		},
		"the files of the units are compared before and after; an unreadable file is equal in both": {
			"agent/self/self.go:fileOf", "agent/self/self.go:stampOf", "agent/self/self.go:unitFiles",
		},
		"a release without a list is recognized by its path": {"agent/service/evidence.go:treesOf",
			"agent/service/evidence.go:passes"},
		"the later read reports the error": {
			"artifact/publish/keyring/keyring.go:Has", "artifact/publish/keyring/keyring.go:numbered", "packaging/build.go:same",
			"packaging/pipeline/run.go:homePython",
		},
		"a hint beside the error names a file that is known to be absent": {"agent/minion/minion.go:Load",
			"artifact/process/script.go:inRoot", "state/module/cmd/script.go:unstartable"},
		"a file that remains only uses disk space":                  {"artifact/trust/pages.go:keepPages"},
		"a counter of refusals, which restarts at zero":             {"agent/records/refusals.go:Refused"},
		"the result of an earlier run is not used":                  {"agent/hostrecord/failing.go:isOverruled"},
		"the keys are read from the store again":                    {"cmd/corpus/knownkeys.go:recallKeys"},
		"other sources of credentials are read, and then the store": {"artifact/store/minio/keys.go:aliasKeys"},
		"the error is returned, by another name": {"cmd/corpus/buildtree.go:isTree",
			"state/roots/roots.go:look"},
	}
}

// TestSwallowedErrorsAreFound checks which code TestNoErrorOfALookupIsSwallowed finds, and which it does not.
func TestSwallowedErrorsAreFound(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.go")
	source := `package x
func dropped()  { data, _ := os.ReadFile("f"); use(data) }
func ifPresent() { if _, err := os.Stat("f"); err == nil { use() } }
func ifAbsent() bool { _, err := os.Lstat("f"); return err != nil }
func inSwitch() { switch info, err := os.Stat("f"); { case err == nil && info.IsDir(): use() } }
func globbed()  { all, err := filepath.Glob("*"); use(all, err) }
func walked()   { there, _ := walk.Exists("f"); use(there) }
func again() error { data, err := os.ReadFile("f"); if err == nil { use(data) }; err = other(); return err }
func returned() error { _, err := os.Stat("f"); if err != nil { return err }; return nil }
func asked()    { if _, err := os.Stat("f"); errors.Is(err, fs.ErrNotExist) { use() } }
func passed() error { _, err := os.Stat("f"); found, err := walk.Found(err); use(found); return err }
func named() (err error) { _, err = os.Stat("f"); return }
func stored()   { var s struct{ err error }; _, s.err = os.Stat("f"); use(s) }
`
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := swallowed(file)
	if err != nil {
		t.Fatal(err)
	}
	var functions []string
	for _, f := range found {
		functions = append(functions, f.function)
	}
	want := []string{"dropped", "ifPresent", "ifAbsent", "inSwitch", "globbed", "walked", "again"}
	if !slices.Equal(functions, want) {
		t.Errorf("found %v, want %v", functions, want)
	}
}

// look is a call that looks up a path and whose error is swallowed.
type look struct {
	function, call string
	line           int
}

// swallowed lists the lookups of a source file whose errors are swallowed.
func swallowed(file string) ([]look, error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, nil, 0)
	if err != nil {
		return nil, err
	}
	var all []look
	for _, decl := range parsed.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if assign, ok := n.(*ast.AssignStmt); ok && len(assign.Rhs) == 1 {
				if call := looksAt(assign.Rhs[0]); call != "" && drops(f, assign, call) {
					all = append(all, look{f.Name.Name, call, set.Position(assign.Pos()).Line})
				}
			}
			return true
		})
	}
	return all, nil
}

// looksAt returns the name of the function if an expression calls one that looks up a path, and otherwise "".
func looksAt(e ast.Expr) string {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return ""
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	of := "?"
	if x, ok := f.X.(*ast.Ident); ok {
		of = x.Name
	}
	name := of + "." + f.Sel.Name
	looks := []string{"Stat", "Lstat", "ReadFile", "ReadDir", "Readlink", "Glob", "LookPath"}
	switch {
	case slices.Contains(looks, f.Sel.Name) && slices.Contains([]string{"os", "fs", "filepath", "exec", "osexec"}, of):
		return name
	case of == "walk" && slices.Contains([]string{"Found", "Exists", "Named", "Directory", "Read", "ReadFile",
		"ReadGiven"},
		f.Sel.Name):
		return name
	}
	return ""
}

// drops reports whether a function only compares the error of a lookup with nil.
func drops(f *ast.FuncDecl, assign *ast.AssignStmt, call string) bool {
	err, ok := assign.Lhs[len(assign.Lhs)-1].(*ast.Ident)
	switch {
	case call == "filepath.Glob":
		return true
	case !ok || len(assign.Lhs) < 2:
		return false
	case err.Name == "_":
		return true
	}
	var compared, usedOtherwise bool
	end := reassigned(f, assign, err)
	written := map[*ast.Ident]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if x, ok := n.X.(*ast.Ident); ok && same(x, err) && fmt.Sprint(n.Y) == "nil" {
				compared = true
				return false
			}
		case *ast.AssignStmt:
			for _, l := range n.Lhs {
				if id, ok := l.(*ast.Ident); ok {
					written[id] = true
				}
			}
		case *ast.ReturnStmt:
			usedOtherwise = usedOtherwise || len(n.Results) == 0 && n.Pos() > assign.Pos() && isResult(f, err)
		case *ast.Ident:
			usedOtherwise = usedOtherwise || same(n, err) && !written[n] && n.Pos() > assign.End() && n.Pos() < end
		}
		return true
	})
	return compared && !usedOtherwise
}

// reassigned returns the position at which a variable gets its next value after an assignment, or the end of the
// function.
func reassigned(f *ast.FuncDecl, after *ast.AssignStmt, name *ast.Ident) token.Pos {
	end := f.End()
	ast.Inspect(f, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok && a.Pos() > after.End() && a.Pos() < end {
			for _, l := range a.Lhs {
				if id, ok := l.(*ast.Ident); ok && same(id, name) {
					end = a.End()
				}
			}
		}
		return true
	})
	return end
}

// testSupport reports whether a file is only compiled into tests.
func testSupport(path string) bool {
	return slices.ContainsFunc([]string{"/hosttest/", "/storetest/", "/statetest/", "/artifacttest/", "/elbtest/"},
		func(dir string) bool { return strings.Contains(path, dir) })
}

// same reports whether two names mean the same variable.
func same(a, b *ast.Ident) bool {
	return a.Name == b.Name && a.Obj == b.Obj //nolint:staticcheck // a single file needs no type checker for this
}

func isResult(f *ast.FuncDecl, name *ast.Ident) bool {
	if f.Type.Results == nil {
		return false
	}
	for _, field := range f.Type.Results.List {
		for _, n := range field.Names {
			if same(n, name) {
				return true
			}
		}
	}
	return false
}
