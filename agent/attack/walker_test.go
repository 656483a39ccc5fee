package attack_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// primitive is a call of package walk on the file f of a place. out is a file for its output that every user may read.
type primitive struct {
	name string
	kind kind
	do   func(r *walk.Root, f, out string) error
	// with replaces the root and the path of f for this primitive. The test calls it once, before the first call of the
	// primitive; nil keeps both.
	with func(w *world, r *walk.Root, f string) (*walk.Root, string)
}

// inDir returns a primitive that calls a method of a directory with a name in it.
func inDir(do func(d *walk.Dir, name string) error) func(*walk.Root, string, string) error {
	return func(r *walk.Root, f, _ string) error {
		d, name, err := r.Parent(f)
		if err != nil {
			return err
		}
		return errors.Join(do(d, name), d.Close())
	}
}

// primitives is the table. To add one, write the call.
func primitives() []primitive {
	written := func(w io.Writer) error { _, err := io.WriteString(w, "new\n"); return err }
	anns := walk.New{Mode: 0o666, UID: ann, GID: ann}
	return []primitive{
		{name: "Root.OpenFile", kind: file, do: copied},
		{name: "Root.Follow and Dir.Create", kind: file, do: func(r *walk.Root, f, _ string) error {
			d, name, err := r.Follow(f)
			if err != nil {
				return err
			}
			return errors.Join(d.Create(name, anns, written), d.Close())
		}},
		{name: "Root.Follow and Dir.Create, new", kind: none, do: func(r *walk.Root, f, _ string) error {
			d, name, err := r.Follow(f)
			if err != nil {
				return err
			}
			return errors.Join(d.Create(name, anns, written), d.Close())
		}},
		{name: "Dir.Open", kind: file, do: func(r *walk.Root, f, out string) error {
			return inDir(func(d *walk.Dir, name string) error {
				in, err := d.Open(name)
				return given(in, err, out)
			})(r, f, out)
		}},
		{name: "Dir.Create", kind: file, do: inDir(func(d *walk.Dir, name string) error {
			return d.Create(name, anns, written)
		})},
		{name: "Dir.Create, new", kind: none, do: inDir(func(d *walk.Dir, name string) error {
			return d.Create(name, anns, written)
		})},
		{name: "Dir.Mkdir", kind: none, do: inDir(func(d *walk.Dir, name string) error {
			made, err := d.Mkdir(name, walk.New{Mode: 0o777, UID: ann, GID: ann})
			if err != nil {
				return errors.Join(err, d.Unlink(name))
			}
			return errors.Join(made.Create("a", anns, written), made.Close(), d.RemoveAll(context.Background(), name))
		})},
		{name: "Dir.Symlink", kind: file, do: inDir(func(d *walk.Dir, name string) error { return d.Symlink("a", name) })},
		{name: "Dir.Rename", kind: file, do: inDir(func(d *walk.Dir, name string) error {
			return errors.Join(d.Rename(name, d, "g"), d.Rename("g", d, name))
		})},
		{name: "Dir.Link", kind: file, do: inDir(func(d *walk.Dir, name string) error {
			return errors.Join(d.Link(name, d, "linked"), d.Unlink("linked"))
		})},
		{name: "Dir.DropACL", kind: file, do: inDir(func(d *walk.Dir, name string) error { return d.DropACL(name) })},
		{name: "Dir.DropDefaultACL", kind: dir, do: inDir(func(d *walk.Dir, name string) error {
			return d.DropDefaultACL(name)
		})},
		{name: "Dir.Chown", kind: file, do: inDir(func(d *walk.Dir, name string) error { return d.Chown(name, ann, ann) })},
		{name: "Dir.Chown of a directory", kind: dir, do: inDir(func(d *walk.Dir, name string) error {
			return d.Chown(name, ann, ann)
		})},
		{name: "Dir.Chmod", kind: file, do: inDir(func(d *walk.Dir, name string) error { return d.Chmod(name, 0o666) })},
		{name: "Dir.Chmod of a directory", kind: dir, do: inDir(func(d *walk.Dir, name string) error {
			return d.Chmod(name, 0o777)
		})},
		{name: "Dir.Unlink", kind: file, do: inDir(func(d *walk.Dir, name string) error { return d.Unlink(name) })},
		{name: "Dir.RemoveAll", kind: dir,
			do: inDir(func(d *walk.Dir, name string) error { return d.RemoveAll(context.Background(), name) })},
		{name: "Dir.Give", kind: file, do: inDir(func(d *walk.Dir, name string) error { return d.Give(name, ann, ann) })},
		{name: "Dir.Give of a directory", kind: dir, do: inDir(func(d *walk.Dir, name string) error {
			return d.Give(name, ann, ann)
		})},
		{name: "Dir.New", kind: none, do: inDir(func(d *walk.Dir, name string) error {
			f, err := d.New(name)
			if err != nil {
				return errors.Join(err, d.Unlink(name))
			}
			return errors.Join(written(f), f.Chmod(0o666), f.Close())
		})},
		{name: "Dir.Below", kind: dir, do: inDir(func(d *walk.Dir, name string) error {
			sub, err := d.Below([]string{name, "sub"})
			if err != nil {
				return err
			}
			return errors.Join(sub.Create("b", anns, written), sub.Chmod("b", 0o666), sub.Close())
		})},
		{name: "Root.As, of another user", kind: file, do: func(r *walk.Root, f, out string) error {
			return copied(r.As(bob), f, out)
		}},
		{name: "Root.Beneath", kind: file, do: func(r *walk.Root, f, out string) error {
			below, err := r.Beneath(path.Dir(f))
			if err != nil {
				return err
			}
			in, err := below.OpenFile("/"+path.Base(f), os.O_RDONLY|0o4000)
			return errors.Join(given(in, err, out), below.Close())
		}},
		{name: "Root.Beneath, opened once", kind: file, do: copied,
			with: func(w *world, r *walk.Root, f string) (*walk.Root, string) {
				below, err := r.Beneath(strings.TrimSuffix(f, "/0/d/f"))
				w.must(err)
				w.Cleanup(func() { _ = below.Close() })
				return below, "/0/d/f"
			}},
		{name: "Root.Anchored at ann's directory by root's link", kind: file, do: copied,
			with: anchored("srv/in/way", "../../home/ann/0", "/d/f")},
		{name: "Root.Anchored at d by root's link", kind: file, do: copied,
			with: anchored("srv/in/way", "../../home/ann/0/d", "/f")},
		{name: "Root.Anchored below root's link", kind: file, do: copied,
			with: anchored("srv/in/way", "../../home/ann", "/0/d/f")},
		{name: "Root.Anchored at d by ann's link", kind: file, do: copied, with: anchored("home/ann/way", "0/d", "/f")},
		{name: "Root.Anchored, writing in d", kind: file, do: func(r *walk.Root, f, _ string) error {
			d, name, err := r.Follow(f)
			if err != nil {
				return err
			}
			return errors.Join(d.Create(name, anns, written), d.Chmod(name, 0o666), d.Close())
		}, with: anchored("srv/in/way", "../../home/ann/0/d", "/f")},
		{name: "Root.Anchored, giving all below d", kind: dir, do: inDir(everything),
			with: anchored("srv/in/way", "../../home/ann/0/d", "/f")},
		{name: "Dir.OpenDir, on every name", kind: dir, do: inDir(func(d *walk.Dir, name string) error {
			return everything(d, name)
		})},
	}
}

// copied copies f to a file that every user may read.
func copied(r *walk.Root, f, out string) error {
	in, err := r.OpenFile(f, os.O_RDONLY|0o4000)
	return given(in, err, out)
}

// anchored makes a link in the world and anchors the root there; rest is the path from the link to f.
func anchored(link, target, rest string) func(*world, *walk.Root, string) (*walk.Root, string) {
	return func(w *world, r *walk.Root, f string) (*walk.Root, string) {
		at := filepath.Join(w.dir, link)
		w.must(os.RemoveAll(at))
		w.must(os.Symlink(target, at))
		if strings.HasPrefix(link, "home/ann/") {
			w.must(own(at))
		}
		way := strings.TrimSuffix(f, "/home/ann/0/d/f") + "/" + link
		top := strings.TrimSuffix(rest, "/f")
		return r.Anchored([]string{way, way + top}), way + rest
	}
}

// everything gives a tree to ann, as fixperms does.
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

// given copies the content of an open file to one that every user may read.
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

// rootKind is a way to open a safe root: below a world or of the machine, with openat2 or without.
type rootKind struct {
	name           string
	below, checked bool
}

func roots() []rootKind {
	return []rootKind{
		{"openat2 below a root", true, false}, {"checked below a root", true, true},
		{"openat2 of the machine", false, false}, {"checked of the machine", false, true},
	}
}

func (r rootKind) options(w *world) walk.Options {
	o := walk.Options{Safe: true, Checked: r.checked}
	if r.below {
		o.Dir = w.dir
	}
	return o
}

// notAttacked are methods of package walk that are not primitives, with the reason.
func notAttacked() map[string]string {
	const part, checks, tells = "part of primitives in the table", "only looks; the states that ask it are attacked",
		"opens nothing"
	return map[string]string{
		"Root.Openat": part, "Root.OpenDir": part, "Root.Parent": part, "Root.Close": part, "Dir.Close": part,
		"Dir.ReadDir": part, "Dir.Sync": part, "Dir.Lstat": part, "Dir.Readlink": part,
		"Root.ByName": checks, "Root.Fixed": checks, "Root.Granted": checks, "Root.KeepsACL": checks, "Root.MayRaise": checks,
		"Root.OwnName": checks, "Root.Changer": checks, "Root.MayDeclare": checks,
		"Root.Resolve": checks, "Root.CheckRootOnly": checks, "Root.Source": checks, "Root.SourceLink": checks,
		"Root.SourceTree": checks, "Root.Shared": checks, "Dir.CheckRootOnly": checks,
		"Root.TakeOver": part, "Root.Renew": "Dir.Chown and Dir.Chmod are built on it",
		"Dir.Walk": "Dir.RemoveAll is built on it", "Root.Opened": tells,
		"Root.Following": "follows every link, as a state with follow_unsafe does", "Dir.Touch": "sets times alone",
		"Root.Free": tells, "Root.Name": tells, "Root.Safe": tells, "Dir.FD": tells, "Dir.Path": tells,
	}
}

// TestEveryPrimitiveHasAnAttack compares the table with the methods of package walk.
func TestEveryPrimitiveHasAnAttack(t *testing.T) {
	files, err := filepath.Glob("../../artifact/walk/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	method := regexp.MustCompile(`(?m)^func \(\w+ \*(Root|Dir)\) ([A-Z]\w*)`)
	exempt := notAttacked()
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range method.FindAllStringSubmatch(string(data), -1) {
			name := m[1] + "." + m[2]
			attacked := slices.ContainsFunc(primitives(), func(p primitive) bool {
				return slices.Contains(strings.FieldsFunc(p.name, notOfName), name)
			})
			if !attacked && exempt[name] == "" {
				t.Errorf("%s has no attack: add it to primitives, or say in notAttacked why it needs no attack", name)
			}
		}
	}
}

func notOfName(r rune) bool { return r == ' ' || r == ',' }

// TestWalker tries each attack on each primitive of a safe root.
func TestWalker(t *testing.T) {
	t.Parallel()
	for _, how := range roots() {
		t.Run(how.name, func(t *testing.T) {
			t.Parallel()
			eachAttack(t, func(t *testing.T, a attack) {
				w := newWorld(t)
				for _, p := range primitives() {
					if a.fits(p.kind) {
						w.primitive(p, a, how.options(w))
					}
				}
			})
		})
	}
}

// primitive tries an attack on a primitive with the given number of calls.
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
	w.must(at.lay())
	if p.with != nil {
		r, inside = p.with(w, r, inside)
	}
	stop := a.begin(w, []place{at})
	defer stop()
	end := time.Now().Add(within)
	done := make(chan int)
	go func() {
		defer close(done)
		laid := at.look()
		for range calls {
			if time.Now().After(end) {
				return
			}
			_ = p.do(r, inside, filepath.Join(w.dir, "srv/out/0"))
			if a.loop == nil && !slices.Equal(at.look(), laid) {
				_ = at.again(a)
				laid = at.look()
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

// look returns the status of each file of a place, to find changes by a primitive.
func (p place) look() (all []unix.Stat_t) {
	for _, at := range []string{p.Dir, p.d(), p.f(), p.x(), filepath.Join(p.f(), "a"), filepath.Join(p.f(), "sub"),
		filepath.Join(p.f(), "sub", "b")} {
		var st unix.Stat_t
		_ = unix.Lstat(at, &st) // a missing file has no inode
		st.Atim = unix.Timespec{}
		all = append(all, st)
	}
	return all
}

// again restores the files that a primitive has changed or removed.
func (p place) again(a attack) error {
	_ = os.RemoveAll(p.Dir)
	if err := p.lay(); err != nil || a.lay == nil {
		return err
	}
	return a.lay(p)
}

// throughTemp replaces a file by a temporary file that it wrote beside it.
func throughTemp(_ *walk.Root, f, _ string) error {
	temp := fmt.Sprintf("%s.tmp%d", f, time.Now().UnixNano())
	if err := os.WriteFile(temp, []byte("new\n"), 0o600); err != nil {
		return err
	}
	return errors.Join(os.Chown(temp, ann, ann), os.Chmod(temp, 0o666), os.Rename(temp, f))
}

// careless are programs that do the operations of the primitives by path.
func careless() []primitive {
	return []primitive{
		{name: "reading", kind: file, do: func(_ *walk.Root, f, out string) error {
			in, err := os.OpenFile(f, os.O_RDONLY|0o4000, 0)
			return given(in, err, out)
		}},
		{name: "writing", kind: file, do: func(_ *walk.Root, f, _ string) error {
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
		{name: "writing, new", kind: none, do: func(_ *walk.Root, f, _ string) error {
			if target, err := os.Readlink(f); err == nil && filepath.IsAbs(target) {
				return os.WriteFile(target, []byte("new\n"), 0o644)
			}
			return errors.Join(throughTemp(nil, f, ""), os.Chown(f, ann, ann))
		}},
		{name: "writing in place, new", kind: none, do: func(_ *walk.Root, f, _ string) error {
			return errors.Join(os.WriteFile(f, []byte("new\n"), 0o644), os.Chown(f, ann, ann))
		}},
		{name: "writing by a temporary file", kind: file, do: throughTemp},
		{name: "writing into a directory", kind: dir, do: func(r *walk.Root, f, out string) error {
			return throughTemp(r, filepath.Join(f, "new"), out)
		}},
		{name: "making directories", kind: dir, do: func(_ *walk.Root, f, _ string) error {
			return os.MkdirAll(filepath.Join(f, "new"), 0o755)
		}},
		{name: "giving away", kind: dir, do: func(_ *walk.Root, f, _ string) error {
			for _, name := range []string{"", "a", "sub", "sub/b"} {
				_ = os.Chown(filepath.Join(f, name), ann, ann)
				_ = os.Chmod(filepath.Join(f, name), 0o777)
			}
			return nil
		}},
	}
}

// TestAttacksBeatCarelessPrograms proves that the suite can fail: each attack succeeds against a program that works by
// path, for each kind of f.
func TestAttacksBeatCarelessPrograms(t *testing.T) {
	w := newWorld(t)
	for _, a := range attacks() {
		if a.robust || !a.short && !full {
			continue
		}
		for _, k := range []kind{file, none, dir} {
			if a.fits(k) && !w.beats(a, k) {
				t.Errorf("the attack %q fails against all careless programs if f is a %q", a.name, k)
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

// TestAttacksBeatAWalkerThatIsNotSafe proves the same for package walk without Options.Safe.
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
			broken := false // the attack has to win a race
			for began := time.Now(); !broken && time.Since(began) < time.Minute; {
				broken = len(w.repeated(p, a, walk.Options{Dir: w.dir}, 500, 2*time.Second)) > 0
			}
			if !broken {
				t.Errorf("%s in a root that is not safe resists %q", p.name, a.name)
			}
		}
	}
}
