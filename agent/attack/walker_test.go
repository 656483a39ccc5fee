package attack_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// primitive is something that package walk does for its callers, on the file f of a place. out is a file of its own that
// every user may read.
type primitive struct {
	name string
	kind kind
	do   func(r *walk.Root, f, out string) error
}

// inDir runs a primitive of a directory on a name in it.
func inDir(do func(d *walk.Dir, name string) error) func(*walk.Root, string, string) error {
	return func(r *walk.Root, f, _ string) error {
		d, name, err := r.Parent(f)
		if err != nil {
			return err
		}
		return errors.Join(do(d, name), d.Close())
	}
}

// primitives is the table. To add one, say what it does to a name.
func primitives() []primitive {
	written := func(w io.Writer) error { _, err := io.WriteString(w, "new\n"); return err }
	anns := walk.New{Mode: 0o666, UID: ann, GID: ann}
	return []primitive{
		{"Root.OpenFile", file, func(r *walk.Root, f, out string) error {
			in, err := r.OpenFile(f, os.O_RDONLY|0o4000)
			return given(in, err, out)
		}},
		{"Root.Follow and Dir.Create", file, func(r *walk.Root, f, _ string) error {
			d, name, err := r.Follow(f)
			if err != nil {
				return err
			}
			return errors.Join(d.Create(name, anns, written), d.Close())
		}},
		{"Root.Follow and Dir.Create, new", none, func(r *walk.Root, f, _ string) error {
			d, name, err := r.Follow(f)
			if err != nil {
				return err
			}
			return errors.Join(d.Create(name, anns, written), d.Close())
		}},
		{"Dir.Open", file, func(r *walk.Root, f, out string) error {
			return inDir(func(d *walk.Dir, name string) error {
				in, err := d.Open(name)
				return given(in, err, out)
			})(r, f, out)
		}},
		{"Dir.Create", file, inDir(func(d *walk.Dir, name string) error { return d.Create(name, anns, written) })},
		{"Dir.Create, new", none, inDir(func(d *walk.Dir, name string) error { return d.Create(name, anns, written) })},
		{"Dir.Mkdir", none, inDir(func(d *walk.Dir, name string) error {
			made, err := d.Mkdir(name, walk.New{Mode: 0o777, UID: ann, GID: ann})
			if err != nil {
				return errors.Join(err, d.Unlink(name))
			}
			return errors.Join(made.Create("a", anns, written), made.Close(), d.RemoveAll(name))
		})},
		{"Dir.Symlink", file, inDir(func(d *walk.Dir, name string) error { return d.Symlink("a", name) })},
		{"Dir.Rename", file, inDir(func(d *walk.Dir, name string) error {
			return errors.Join(d.Rename(name, d, "g"), d.Rename("g", d, name))
		})},
		{"Dir.Chown", file, inDir(func(d *walk.Dir, name string) error { return d.Chown(name, ann, ann) })},
		{"Dir.Chown of a directory", dir, inDir(func(d *walk.Dir, name string) error { return d.Chown(name, ann, ann) })},
		{"Dir.Chmod", file, inDir(func(d *walk.Dir, name string) error { return d.Chmod(name, 0o666) })},
		{"Dir.Chmod of a directory", dir, inDir(func(d *walk.Dir, name string) error { return d.Chmod(name, 0o777) })},
		{"Dir.Unlink", file, inDir(func(d *walk.Dir, name string) error { return d.Unlink(name) })},
		{"Dir.RemoveAll", dir, inDir(func(d *walk.Dir, name string) error { return d.RemoveAll(name) })},
		{"Dir.OpenDir, on every name", dir, inDir(func(d *walk.Dir, name string) error { return everything(d, name) })},
	}
}

// everything gives all below a name to ann, as fixperms does.
func everything(d *walk.Dir, name string) error {
	sub, err := d.OpenDir(name)
	if err != nil {
		return d.Chown(name, ann, ann)
	}
	defer sub.Close()
	names, err := sub.ReadDir()
	errs := []error{err, sub.Chown(".", ann, ann), sub.Chmod(".", 0o777)}
	for _, n := range names {
		errs = append(errs, everything(sub, n))
	}
	return errors.Join(errs...)
}

// given writes what a file holds to where every user may read it, as a copy does.
func given(in *os.File, err error, out string) error {
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	data, err := io.ReadAll(io.LimitReader(in, 1<<16))
	if !strings.Contains(string(data), canary) {
		return err
	}
	return errors.Join(err, os.WriteFile(out, data, 0o644))
}

// roots are the ways in which a safe root is opened.
func roots(w *world) map[string]walk.Options {
	return map[string]walk.Options{
		"openat2 below a root": {Dir: w.dir, Safe: true}, "checked below a root": {Dir: w.dir, Safe: true, Checked: true},
		"openat2 of the machine": {Safe: true}, "checked of the machine": {Safe: true, Checked: true},
	}
}

// TestWalker tries each attack on each primitive of a safe root.
func TestWalker(t *testing.T) {
	w := newWorld(t)
	for how, o := range roots(w) {
		t.Run(how, func(t *testing.T) {
			w.T = t
			for _, p := range primitives() {
				for _, a := range attacks() {
					if a.fits(p.kind) && (a.short || full) && strings.Contains(a.name, os.Getenv("ATTACK")) {
						w.primitive(p, a, o)
					}
				}
			}
		})
	}
}

// primitive tries an attack on a primitive until it has been called often enough.
func (w *world) primitive(p primitive, a attack, o walk.Options) {
	w.Helper()
	if found := w.repeated(p, a, o, calls, callsTime); len(found) > 0 {
		w.Errorf("%s, while %s: %s", p.name, a.name, strings.Join(found, "; "))
	}
}

func (w *world) repeated(p primitive, a attack, o walk.Options, calls int, within time.Duration) []string {
	w.Helper()
	r, err := walk.Open(o)
	w.must(err)
	defer r.Close()
	w.begin()
	at := place{Dir: filepath.Join(w.dir, "home/ann/0"), Host: w.dir, Kind: p.kind}
	inside := "/home/ann/0/d/f"
	if o.Dir == "" {
		at.Top, inside = w.dir, at.f()
	}
	stop := a.begin(w, []place{at})
	defer stop()
	end := time.Now().Add(within)
	done := make(chan int)
	go func() {
		defer close(done)
		for range calls {
			if time.Now().After(end) {
				return
			}
			_ = p.do(r, inside, filepath.Join(w.dir, "srv/out/0"))
			if a.loop == nil {
				_ = at.again(a)
			}
			done <- 1
		}
	}()
	for {
		select {
		case _, more := <-done:
			if !more {
				stop()
				return w.breaks(outcome{})
			}
		case <-time.After(within + 20*time.Second):
			return append(w.breaks(outcome{}), "it waits for ever")
		}
	}
}

// again lays what a primitive may have taken away.
func (p place) again(a attack) error {
	_ = os.RemoveAll(p.Dir)
	if err := p.lay(); err != nil || a.lay == nil {
		return err
	}
	return a.lay(p)
}

// throughTemp replaces a file by one that it wrote beside it.
func throughTemp(_ *walk.Root, f, _ string) error {
	temp := fmt.Sprintf("%s.tmp%d", f, time.Now().UnixNano())
	if err := os.WriteFile(temp, []byte("new\n"), 0o600); err != nil {
		return err
	}
	return errors.Join(os.Chown(temp, ann, ann), os.Chmod(temp, 0o666), os.Rename(temp, f))
}

// careless are programs that do by path what the primitives do by descriptors.
func careless() []primitive {
	return []primitive{
		{"reading", file, func(_ *walk.Root, f, out string) error {
			in, err := os.OpenFile(f, os.O_RDONLY|0o4000, 0)
			return given(in, err, out)
		}},
		{"writing", file, func(_ *walk.Root, f, _ string) error {
			if info, err := os.Lstat(f); err != nil || !info.Mode().IsRegular() {
				_ = os.Chmod(f, 0o666)
			}
			out, err := os.OpenFile(f, os.O_WRONLY|os.O_CREATE|0o4000, 0o644)
			if err != nil {
				return err
			}
			_, err = io.WriteString(out, "new\n")
			return errors.Join(err, out.Close(), os.Chown(f, ann, ann), os.Chmod(f, 0o666))
		}},
		{"writing, new", none, func(_ *walk.Root, f, _ string) error {
			if target, err := os.Readlink(f); err == nil && filepath.IsAbs(target) {
				return os.WriteFile(target, []byte("new\n"), 0o644)
			}
			return errors.Join(throughTemp(nil, f, ""), os.Chown(f, ann, ann))
		}},
		{"writing in place, new", none, func(_ *walk.Root, f, _ string) error {
			return errors.Join(os.WriteFile(f, []byte("new\n"), 0o644), os.Chown(f, ann, ann))
		}},
		{"writing by a temporary file", file, throughTemp},
		{"writing into a directory", dir, func(r *walk.Root, f, out string) error { return throughTemp(r, filepath.Join(f, "new"), out) }},
		{"making directories", dir, func(_ *walk.Root, f, _ string) error { return os.MkdirAll(filepath.Join(f, "new"), 0o755) }},
		{"giving away", dir, func(_ *walk.Root, f, _ string) error {
			for _, name := range []string{"", "a", "sub", "sub/b"} {
				_ = os.Chown(filepath.Join(f, name), ann, ann)
				_ = os.Chmod(filepath.Join(f, name), 0o777)
			}
			return nil
		}},
	}
}

// TestAttacksBeatCarelessPrograms shows that the suite can fail: each attack breaks through a program that works by path,
// for each kind of f.
func TestAttacksBeatCarelessPrograms(t *testing.T) {
	w := newWorld(t)
	for _, a := range attacks() {
		if a.robust || !a.short && !full {
			continue
		}
		for _, k := range []kind{file, none, dir} {
			if a.fits(k) && !w.beats(a, k) {
				t.Errorf("%q breaks through no careless program where f is %q", a.name, k)
			}
		}
	}
}

func (w *world) beats(a attack, k kind) bool {
	w.Helper()
	for _, p := range careless() {
		for range 3 {
			if p.kind == k && len(w.repeated(p, a, walk.Options{}, 1000, 3*time.Second)) > 0 {
				return true
			}
		}
	}
	return false
}

// TestAttacksBeatAWalkerThatIsNotSafe shows the same for package walk without Options.Safe.
func TestAttacksBeatAWalkerThatIsNotSafe(t *testing.T) {
	w := newWorld(t)
	for _, a := range attacks() {
		if a.name != "d is a link to root's directory" && a.name != "d and a link to root's directory change places" {
			continue
		}
		for _, p := range primitives() {
			if p.name != "Dir.Create" && p.name != "Dir.Chown" && p.name != "Root.OpenFile" {
				continue
			}
			broken := false
			for range 10 {
				broken = broken || len(w.repeated(p, a, walk.Options{Dir: w.dir}, 500, 2*time.Second)) > 0
			}
			if !broken {
				t.Errorf("%s in a root that is not safe holds, while %s", p.name, a.name)
			}
		}
	}
}
