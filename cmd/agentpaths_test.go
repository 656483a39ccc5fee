package cmd_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTheAgentOpensNoPathOfAUserByName checks that the agent makes no calls with the path of a file in a directory that
// another user can change: the path may lead elsewhere between its check and its use. Package walk opens such paths by
// descriptors. Each function that may use paths is listed here by its file, with the reason, so that a new function in
// such a file is not exempt.
func TestTheAgentOpensNoPathOfAUserByName(t *testing.T) {
	const (
		state    = "the state directory, which is root's and 0700: see closeState"
		project  = "a project's directory, its releases, archives, pillar and links, which are root's: see reclaim"
		release  = "a release's code, which is root's and was compared with its list before: see intact"
		etc      = "the host's configuration, which is root's"
		kernel   = "/proc and /sys"
		operator = "a path that an operator gave"
	)
	allowed := map[string]excepted{
		"agent/releases/fetch.go":  {project + "; os.Root keeps the comparison inside the release", "Run.isComplete"},
		"agent/linking/linking.go": {project, "Run.clearNames"},
		"agent/inspect/drift.go":   {project, "Host.missing"},
		"agent/linking/guard.go":   {project, "placeAt Guard.Changed"},
		"agent/linking/compare.go": {project, "Run.namesLead"},
		"agent/config/damaged.go":  {etc, "readRegular"},
		"agent/config/editing/editing.go": {operator,
			"Create read Editing.Run Editing.untilValid Editing.install Editing.keep"},
		"agent/config/exposed.go": {"asks for modes of files that the configuration names, and nothing else", "private"},
		"agent/identity.go":       {etc, "run.copyConfiguration"},
		"agent/failure/noexec.go": {kernel + ", and where /srv/projects and the agent's own directory are", "mountOf"},
		"agent/fetch/arrive.go":   {state, "Fetcher.arriveInBlocks Fetcher.arriveWhole arrival.end"},
		"agent/fetch/delta.go": {state + "; what is read of a release is verified by its digest",
			"Fetcher.halfArrived Fetcher.oldTrees"},
		"agent/doctor/onhost/control.go": {state, "Host.control"},
		"agent/fetch/held.go":            {project, "Held.holds"},
		"agent/guests/guests.go":         {release, "Cloud"},
		"agent/members/memory.go":        {state, "ReadMemory"},
		"agent/image/image.go": {"a directory of images of guests, which is root's alone (0700)",
			"unpackTo complete"},
		"agent/fetch/lists.go": {state, "stampOf"},
		"agent/fetch/place.go": {state + ", and " + project,
			"Fetcher.place Fetcher.adopt"},
		"agent/fetch/prune.go": {project,
			"PruneLists NewestFirst"},
		"agent/hook/hook.go": {release, "List Any checkProgram"},
		"agent/inspect/audit.go": {state + "; os.Root keeps the comparison inside the release, and it opens without waiting",
			"Host.AuditRelease Host.blame"},
		"agent/inspect/override.go": {operator, "overridePillar"},
		"agent/inspect/units.go":    {project, "Host.linksTo CurrentOf LinkedAt"},
		"agent/releases/intact.go":  {state + "; os.Root keeps the comparison inside the release", "Run.changedCode"},
		"agent/journal/journal.go":  {state, "Journal.numbers Journal.sizeExcept"},
		"agent/journal/read.go":     {state, "Journal.read"},
		"agent/journal/pieces.go":   {state, "Chapter.Open"},
		"agent/journal/write.go":    {state, "Journal.extend Journal.start"},
		"agent/ledger/file.go":      {state, "read"},
		"agent/link/link.go": {project,
			"Links.Read Links.Instead Links.SetNext Links.Named Links.name Links.Reachable Links.point Name"},
		"agent/lock/abandoned.go":  {state, "Abandoned"},
		"agent/lock/lock.go":       {state, "open exclusive read"},
		"agent/hostkey/hostkey.go": {state, "Open Read"},
		"agent/hostkey/once.go":    {state, "ReadAttempts"},
		"agent/layout/contained.go": {"looks at links in the state directory, which is root's, and follows none",
			"Layout.writable"},
		"agent/hostrecord/write.go":     {state, "readWritten"},
		"agent/hostrecord/failing.go":   {state, "Writer.WriteFailure Writer.isOverruled"},
		"agent/turns/ask.go":            {state, "Run.roster"},
		"agent/lock/sharers.go":         {state + ", and " + kernel, "Sharers flocks"},
		"agent/lock/removed.go":         {state + ", and " + kernel, "isAt ofRemoved heldIn"},
		"agent/minion/minion.go":        {operator, "reader.read reader.none"},
		"agent/notify/program.go":       {"sendmail, of the host's own programs", "Mail.Send"},
		"agent/notify/webhook.go":       {etc, "Webhook.sign"},
		"agent/outgoing/readable.go":    {"asks for modes of a file and nothing else", "readableWay readableByAll"},
		"agent/self/systemctl.go":       {kernel, "systemctls parentOf arguments"},
		"agent/procedure/archive.go":    {"a temporary directory among archives, which are root's", "Tree.Archive"},
		"agent/procedure/git/git.go":    {project, "Export"},
		"agent/procedure/procedure.go":  {release, "Find InstallSLS"},
		"agent/procedure/settings.go":   {"a file that the caller names on the command line", "InputOf"},
		"agent/project/procedures.go":   {state, "Run.program"},
		"agent/project/repositories.go": {project, "Run.Repositories"},
		"agent/project/sync.go":         {"links below /srv/salt and /srv/pillar, which are root's", "Run.wire"},
		"agent/project/tree.go":         {project, "export closeLinked Pillar.Exchange"},
		"agent/records/evidence.go":     {project, "Records.serviceByDisk"},
		"agent/records/hold.go":         {state, "Records.exclusively Records.Requested"},
		"agent/records/ledger.go":       {state + ", and " + project, "Records.hasLedger"},
		"agent/records/ledgercopy.go":   {state + ", and " + project, "Records.refreshCopy"},
		"agent/records/lock.go":         {state, "Exclusive.Release"},
		"agent/records/refusals.go":     {state, "Records.Refused Records.ForgetRefusals"},
		"agent/records/repair.go": {state + ", and " + project,
			"setAside.directory setAside.below setAside.file setAside.cache Records.SetLinksAside Records.repairLock " +
				"setAside.fine Records.Astray"},
		"agent/records/who.go": {project, "Records.recallWho"},
		"agent/doctor/onhost/pillar.go": {"after CheckPillar: root alone can change the directory and what is in it",
			"readable"},
		"agent/doctor/onhost/keys.go": {project + "; runs compile the same files", "Host.encrypted"},
		"agent/records/restore.go":    {state + ", and " + project, "Records.Concerns"},
		"agent/report/archive.go":     {state, "Archive.Save Archive.unordered Archive.sequence Archive.Load"},
		"agent/report/index.go":       {state, "Archive.keepIndex"},
		"agent/self/restore.go": {etc + ", and the agent's own program and units",
			"Self.restoreProgram file.restore put remove"},
		"agent/self/self.go":            {etc + ", and the agent's own program and units", "fileOf stampOf unitFiles"},
		"agent/self/try.go":             {"refuses a path of which a part is not root's", "trusted"},
		"agent/service/evidence.go":     {kernel + ", and names of releases", "treesOf passes"},
		"agent/serving/changedlinks.go": {"links of /srv, in directories that are root's, and only looked at", "changedAt"},
		"agent/site/modes.go":           {project, "Site.Impassable"},
		"agent/site/programs.go":        {"only looked at; what it finds is then checked", "isFile"},
		"agent/site/temporary.go":       {state, "Site.NoteTemporary Site.SweepTemporary"},
		"agent/releases/requirements.go": {"the host's loaders and libraries, whose existence is examined",
			"Run.CheckRequirements Run.NoteInterpreters"},
	}
	calls := regexp.MustCompile(
		`\bos\.(Open|OpenFile|OpenRoot|Create|CreateTemp|MkdirTemp|ReadFile|WriteFile|Chown|Lchown|Chmod|Chtimes|Remove|` +
			`RemoveAll|Rename|Symlink|Link|Mkdir|MkdirAll|Stat|Lstat|ReadDir|Readlink|Truncate|DirFS|CopyFS)\(|` +
			`walk\.(ReadFile|OpenFile|ReadGiven|OpenGiven|OpenDir|OpenTree)\(|filepath\.(Walk|WalkDir|EvalSymlinks|Glob)\(|` +
			`\b(unix|syscall)\.(Open|Chown|Lchown|Chmod|Unlink|Rename|Rename2|Renameat2|Symlink|Link|Mkdir|Rmdir|Truncate)\(`)
	used := map[string]bool{}
	err := filepath.WalkDir("../agent", func(path string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		name := strings.TrimPrefix(filepath.ToSlash(path), "../")
		uses, err := usesOf(path, calls)
		for _, u := range uses {
			used[name+" "+u.function] = true
			if strings.Contains(u.text, "os.RemoveAll(") && u.function != "Archive.keepIndex" && u.function != "setAside.cache" {
				t.Errorf("%s:%d: %s: os.RemoveAll continues after the run was asked to end: use durable.RemoveAll", name, u.line,
					u.function)
			}
			if e := allowed[name]; e.reason == "" || !slices.Contains(strings.Fields(e.functions), u.function) {
				t.Errorf("%s:%d: %s: %s: use a safe walk.Root, or name the function here with the reason why no other user "+
					"can change the path", name, u.line, u.function, u.text)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	for name, e := range allowed {
		for _, function := range strings.Fields(e.functions) {
			if !used[name+" "+function] {
				t.Errorf("%s: %s uses no path and needs no exception", name, function)
			}
		}
	}
}

// excepted has the reason why functions of a file may use paths.
type excepted struct{ reason, functions string }

// pathUse is a line that uses a path.
type pathUse struct {
	line     int
	function string // with its receiver's type: Type.method; "package" outside of functions
	text     string
}

// usesOf lists the lines of a source file that match, except comments.
func usesOf(file string, calls *regexp.Regexp) (all []pathUse, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, data, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for i, line := range strings.Split(string(data), "\n") {
		if code, _, _ := strings.Cut(line, "//"); calls.MatchString(code) {
			all = append(all, pathUse{i + 1, functionAt(set, parsed, i+1), strings.TrimSpace(line)})
		}
	}
	return all, nil
}

// functionAt returns the name of the function at a line.
func functionAt(set *token.FileSet, file *ast.File, line int) string {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || line < set.Position(f.Pos()).Line || line > set.Position(f.End()).Line {
			continue
		}
		if f.Recv == nil {
			return f.Name.Name
		}
		receiver := f.Recv.List[0].Type
		if star, ok := receiver.(*ast.StarExpr); ok {
			receiver = star.X
		}
		if named, ok := receiver.(*ast.Ident); ok {
			return named.Name + "." + f.Name.Name
		}
		return f.Name.Name
	}
	return "package"
}

// TestNewFunctionIsNotExempt checks that the test above distinguishes the functions of a file.
func TestNewFunctionIsNotExempt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.go")
	source := "package x\n\nvar a = os.Open(\"a\")\n\nfunc old() {\n\tos.Open(p) // os.Remove(p)\n\t// os.Remove(p)\n" +
		"}\n\nfunc (t *T) added() { _ = func() { os.Remove(p) } }\n"
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	uses, err := usesOf(file, regexp.MustCompile(`\bos\.\w+\(`))
	var got []string
	for _, u := range uses {
		got = append(got, fmt.Sprint(u.line, " ", u.function))
	}
	if want := []string{"3 package", "6 old", "10 T.added"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}
