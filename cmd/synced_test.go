package cmd_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/journal"
	"github.com/corpus-agent/corpus-agent/packaging/hosttest/fault"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// disk is what a power failure would leave of the files of a program at each of its calls.
type disk struct {
	t       *testing.T
	root    string
	content map[string]bool   // files whose content is not synced
	names   map[string]string // directories whose names are not synced, and the name that changed last
	removed map[string]string // those of them in which a name was removed, and that name
	records []*journal.Record // those of the chapter of the journal that was synced last
	text    string            // all of that chapter
	undone  int               // how many of them were undone
	back    bool              // the run has moved next back, so its changes are undone from now on
	wrong   []string
}

func newDisk(t *testing.T, root string) *disk {
	return &disk{t: t, root: root, content: map[string]bool{}, names: map[string]string{},
		removed: map[string]string{}}
}

// temporary reports whether a path has a name that the next run of the program removes, or none.
func temporary(path string) bool {
	return strings.Contains(path, "/.corpus-") || strings.Contains(path, "/.staged-") ||
		strings.HasSuffix(path, " (deleted)")
}

// mayBeLost reports whether a path on a host is of a file that a run writes again if it is lost.
func mayBeLost(path string) bool {
	for _, part := range []string{"/var/lib/corpus/lock", "/var/lib/corpus/refused.json", "/var/lib/corpus/incoming/",
		"/var/lib/corpus/temporary", // the journal names the same directories
		"/var/lib/corpus/reports/.sequences", "~pages/"} {
		if strings.Contains(path, part) {
			return true
		}
	}
	return temporary(path)
}

// see checks and records a call before it proceeds.
func (d *disk) see(c fault.Call) {
	switch c.Name {
	case "create":
		d.named(c.Path)
		d.content[c.Path] = true
	case "write", "pwrite64", "copy_file_range":
		d.content[c.Path] = true
	case "fsync", "fdatasync":
		if strings.HasSuffix(c.Path, ".journal") {
			d.chapter(c.Path)
		}
		delete(d.content, c.Path)
		delete(d.names, c.Path)
		delete(d.removed, c.Path)
	case "syncfs": // each directory at the top of a host may be a filesystem
		d.synced(c.Path)
	case "renameat", "renameat2", "linkat":
		d.moved(c)
	case "symlinkat", "mkdirat":
		d.named(c.Path)
	case "unlinkat":
		if _, err := os.Lstat(c.Path); err == nil {
			d.changed(c.Path)
			d.removed[filepath.Dir(c.Path)] = c.Path
		}
	}
}

// synced records that the filesystem of a path is synced.
func (d *disk) synced(path string) {
	top, _, _ := strings.Cut(strings.TrimPrefix(path, d.root+"/"), "/")
	in := func(path string) bool { return strings.HasPrefix(path, d.root+"/"+top+"/") }
	maps.DeleteFunc(d.content, func(path string, _ bool) bool { return in(path) })
	for _, dirs := range []map[string]string{d.names, d.removed} {
		maps.DeleteFunc(dirs, func(path, _ string) bool { return in(path + "/") })
	}
}

// named records a call that makes a name, unless that exists.
func (d *disk) named(path string) {
	if _, err := os.Lstat(path); err != nil {
		d.changed(path)
	}
}

// moved records that a file, or a directory with all its files, gets another name.
func (d *disk) moved(c fault.Call) {
	for path := range d.content {
		below := strings.TrimPrefix(path, c.From)
		if path != c.From && (below == path || !strings.HasPrefix(below, "/")) {
			continue
		}
		if !mayBeLost(c.Path) && !d.release(c.Path) {
			d.fail("%s gets its name before its content is synced", c.Path+below)
		}
		if c.Name != "linkat" {
			delete(d.content, path)
		}
		d.content[c.Path+below] = true
	}
	d.changed(c.Path)
}

// release reports whether a path is of the list of a release's files, which is synced before the release gets its name.
func (d *disk) release(path string) bool { return strings.Contains(path, "/var/lib/corpus/trees/") }

// changed checks and records a call that changes a name.
func (d *disk) changed(path string) {
	if mayBeLost(path) {
		return
	}
	d.check(path)
	if last := d.removed[filepath.Dir(path)]; last != "" && !strings.HasPrefix(path, d.root+"/etc/") && !mayBeLost(last) {
		d.fail("%s changes before the removal of %s is synced", path, last)
	}
	d.names[filepath.Dir(path)] = path
}

// check checks what must be on the disk before a name changes.
func (d *disk) check(path string) {
	in := strings.TrimPrefix(path, d.root)
	switch {
	case strings.HasPrefix(in, "/etc/"):
		d.own(path)
		d.recorded(path, in)
	case slices.Contains([]string{"ledger.json", ".ledger.json", "next", "current", "previous"}, filepath.Base(in)):
		d.own(path)
	case filepath.Base(filepath.Dir(in)) == "releases":
		for file := range d.content {
			if strings.HasPrefix(file, d.root+"/var/lib/corpus/trees/") && filepath.Base(file) == filepath.Base(in) {
				d.fail("%s gets its name before %s is synced", path, file)
			}
		}
	}
	switch filepath.Base(in) {
	case "previous":
		d.converged(path)
	case "next":
		d.back = d.records != nil
	}
}

// own checks that the names of the agent's own files are synced.
func (d *disk) own(before string) {
	for dir, last := range d.names {
		if !strings.HasPrefix(dir, d.root+"/etc") {
			d.fail("%s changes before the directory of %s is synced", before, last)
		}
	}
}

// recorded checks that the journal on the disk has the change of a path, and in a rollback that it is about to be
// undone.
func (d *disk) recorded(path, in string) {
	for _, r := range d.records {
		if d.back && !r.Begun {
			continue
		}
		if r.Subject.Name == in || r.Subject.Kind == host.KindTree && strings.HasPrefix(in, r.Subject.Name+"/") {
			return
		}
	}
	if d.back || !strings.Contains(d.text, `"path":"`+in+`"`) { // it may be planned
		d.fail("%s changes before the journal has its record", path)
	}
}

// converged checks that all files of the states, and their records, are on the disk.
func (d *disk) converged(before string) {
	d.clean(before)
	for _, r := range d.records {
		if r.Subject.Kind == host.KindFile && (r.After == nil || !r.Synced) {
			d.fail("%s changes before the journal has the image of %s after the run", before, r.Subject.Name)
		}
	}
}

// clean checks that everything is on the disk.
func (d *disk) clean(before string) {
	for file := range d.content {
		if !mayBeLost(file) {
			d.fail("%s before the content of %s is synced", before, file)
		}
	}
	for dir, last := range d.names {
		d.fail("%s before the names in %s are synced: %s", before, dir, last)
	}
}

// chapter reads the chapter of the journal that a call syncs.
func (d *disk) chapter(path string) {
	dir := d.t.TempDir()
	data, err := os.ReadFile(path)
	if err != nil {
		d.fail("reading the journal: %v", err)
		return
	}
	if err := os.WriteFile(filepath.Join(dir, filepath.Base(path)), data, 0o600); err != nil {
		d.t.Error(err)
	}
	chapters, err := journal.Journal{Dir: dir}.Chapters()
	if err != nil || len(chapters) != 1 {
		d.fail("the journal has %d chapters: %v", len(chapters), err)
		return
	}
	d.records, d.text = chapters[0].Records, string(data)
	undone := 0
	for _, r := range d.records {
		if r.Undone != nil {
			undone++
		}
	}
	if undone > d.undone {
		delete(d.content, path)
		d.clean("the journal counts changes as undone")
	}
	d.undone = undone
}

func (d *disk) fail(format string, args ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), d.root, "")
	d.wrong = append(d.wrong, text)
}

// TestSyncedInOrder follows the calls of programs that change the disk, and checks at each of them what a power failure
// would leave: no file has its name before its content is synced, no state changes a file before the journal on the
// disk has its record, no link moves before the directories of what it leads to are synced, and at the end all of it
// is.
func TestSyncedInOrder(t *testing.T) {
	f := newFleet(t)
	root := f.host()
	calls := 0
	follow := func(program string, below string, code int, args ...string) {
		t.Helper()
		d := newDisk(t, below)
		cmd := exec.Command(filepath.Join(bin(t), program), args...)
		cmd.Env = f.env(root)
		o, err := fault.Watch{Calls: fault.Names(), Below: below, Each: d.see}.Run(cmd)
		if err != nil {
			if strings.Contains(err.Error(), "seccomp") {
				t.Skipf("this kernel does not let system calls be watched: %v", err)
			}
			t.Fatal(err)
		}
		if o.Code != code {
			t.Fatalf("%v: exit code %d, want %d: %s%s", cmd.Args, o.Code, code, o.Out, o.Err)
		}
		if len(o.Calls) == 0 {
			t.Errorf("no call of %s %s was followed", program, strings.Join(args, " "))
		}
		d.clean("the program ends")
		calls += len(o.Calls)
		for _, wrong := range d.wrong {
			t.Errorf("%s %s: %s", program, strings.Join(args, " "), wrong)
		}
	}
	f.service("1", "")
	follow("corpus-agent", root, 0, "deploy")
	f.service("2", "")
	follow("corpus-agent", root, 0, "deploy")
	f.service("3", `
first: # is undone last, by a call that syncs nothing
  file.symlink: [name: /etc/first/link, target: /etc/myapp, makedirs: True, order: first]
break:
  file.managed: [name: /etc/myapp/page, source: /not-there, order: last]
`)
	follow("corpus-agent", root, 7, "deploy")
	follow("corpus", f.store, 0, "point", "myapp", "testing", "1")
	t.Logf("%d calls", calls)
}
