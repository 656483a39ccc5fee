package attack_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// place is a directory of ann's in which an operation runs once. The operation acts on the file or directory f in the
// directory d.
type place struct {
	Dir  string // on the machine
	Host string // the world's directory on the machine
	Top  string // prefix of link targets that lead to the world's files; "" if the program runs with the world as "/"
	Kind kind   // kind of f before the operation
	D, F string // names of d and f

	prepare func() // creates the other files that the operation needs
}

// kind is the kind of file that an operation expects at f.
type kind string

const (
	file kind = "file"
	dir  kind = "dir"
	none kind = "none"
)

// content is the content of f if it is a file.
const content = "one = 1\n# two = 2\n[section]\nkey = value\n"

func (p place) d() string                { return filepath.Join(p.Dir, cmp.Or(p.D, "d")) }
func (p place) f() string                { return filepath.Join(p.d(), cmp.Or(p.F, "f")) }
func (p place) x() string                { return filepath.Join(p.Dir, "x") }
func (p place) victim(rel string) string { return filepath.Join(p.Host, rel) }

// lay makes the directory that the operation needs, owned by ann, as in a run without an attack.
func (p place) lay() error {
	err := errors.Join(p.clear(), os.RemoveAll(p.d()), os.RemoveAll(p.x()), os.MkdirAll(p.d(), 0o755), p.fill())
	if err != nil || os.Geteuid() != 0 {
		return err
	}
	if err := os.Lchown(p.Dir, ann, ann); err != nil {
		return err
	}
	return filepath.WalkDir(p.d(), func(name string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(name, ann, ann))
	})
}

// clear removes links that an earlier attack left on the path to d: root creates the place by path names.
func (p place) clear() error {
	way := []string{p.Dir}
	for at := filepath.Dir(p.d()); at != p.Dir; at = filepath.Dir(at) {
		way = append(way[:1], append([]string{at}, way[1:]...)...)
	}
	for _, at := range way {
		if info, err := os.Lstat(at); err != nil || info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		if err := errors.Join(os.Remove(at), os.RemoveAll(at+".x")); err != nil {
			return err
		}
	}
	return nil
}

// fill makes f.
func (p place) fill() error {
	switch p.Kind {
	case file:
		return os.WriteFile(p.f(), []byte(content), 0o644)
	case dir:
		return errors.Join(os.MkdirAll(filepath.Join(p.f(), "sub"), 0o755),
			os.WriteFile(filepath.Join(p.f(), "a"), []byte("ann's\n"), 0o644),
			os.WriteFile(filepath.Join(p.f(), "sub", "b"), []byte("ann's\n"), 0o644))
	}
	return nil
}

// put replaces the file at a path with a link of ann's.
func (p place) put(at, target string) error {
	return errors.Join(os.RemoveAll(at), os.Symlink(p.Top+target, at), own(at))
}

func own(at string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Lchown(at, ann, ann)
}

// like returns the path of a victim of the same kind as f.
func (p place) like() string {
	if p.Kind == dir {
		return "/etc/victimtree/f"
	}
	return "/etc/victim"
}

// likeDir returns the path of a directory of root's that has an f of the same kind.
func (p place) likeDir() string {
	switch p.Kind {
	case dir:
		return "/etc/victimtree"
	case file:
		return "/etc/victimdir"
	}
	return "/etc/cron.d"
}

// attack is what ann does in a place: one action before the operation, and one that repeats while it runs.
type attack struct {
	name  string
	kinds []kind // kinds of f for which the attack applies; all if empty
	lay   func(place) error
	loop  func(place) error
	// robust is set if the careless program of TestAttacksBeatCarelessPrograms resists the attack: its purpose is to
	// make the agent wait, fail or fill the disk.
	robust bool
	short  bool // part of the short form
}

func (a attack) fits(k kind) bool {
	for _, fit := range a.kinds {
		if fit == k {
			return true
		}
	}
	return len(a.kinds) == 0
}

// attacks is the table. To add one, write what it does before the operation and in each round; the tests try it on
// every operation.
func attacks() []attack {
	return []attack{
		{name: "f is a link to root's file", short: true, lay: func(p place) error { return p.put(p.f(), p.like()) }},
		{name: "f is a link to a readable file of root's", kinds: []kind{file}, lay: func(p place) error {
			return p.put(p.f(), "/etc/victim.conf")
		}},
		{name: "f is a link to bob's file", kinds: []kind{file, none}, lay: func(p place) error {
			return p.put(p.f(), "/home/bob/f")
		}},
		{name: "f is a link to where nothing is yet", kinds: []kind{file, none}, short: true, lay: func(p place) error {
			return p.put(p.f(), "/etc/cron.d/new")
		}},
		{name: "f is a link to a link to root's file", lay: func(p place) error {
			return errors.Join(p.put(p.x(), p.like()), os.RemoveAll(p.f()), os.Symlink("../x", p.f()), own(p.f()))
		}},
		{name: "f is a link to the environment of the reader", kinds: []kind{file}, lay: func(p place) error {
			return p.put(p.f(), "/proc/self/environ")
		}, robust: true},
		{name: "d is a link to root's directory", short: true, lay: func(p place) error { return p.put(p.d(), p.likeDir()) }},
		{name: "d is a link to root's directory where f is not", lay: func(p place) error {
			return p.put(p.d(), "/etc/cron.d")
		}},
		{name: "d is a link to bob's directory", lay: func(p place) error { return p.put(p.d(), "/home/bob") }},
		{name: "d is a link upwards", lay: func(p place) error {
			return errors.Join(os.RemoveAll(p.d()), os.Symlink("../../..", p.d()), own(p.d()))
		}},
		{name: "d is a link out of the root", short: true, lay: func(p place) error {
			return errors.Join(os.RemoveAll(p.d()), os.Symlink("../../../../../../../../../.."+p.victim("../outside"), p.d()),
				own(p.d()))
		}, robust: true},
		{name: "d is a link to the root of a process", lay: func(p place) error {
			return p.put(p.d(), "/proc/self/root/etc/victimdir")
		}, robust: true},
		{name: "f is root's file by another name", kinds: []kind{file, none}, short: true, lay: func(p place) error {
			return errors.Join(os.RemoveAll(p.f()), os.Link(p.victim("etc/victim"), p.f()))
		}},
		{name: "f is bob's file by another name", kinds: []kind{file, none}, lay: func(p place) error {
			return errors.Join(os.RemoveAll(p.f()), os.Link(p.victim("home/bob/f"), p.f()))
		}},
		{name: "f holds root's file by another name", kinds: []kind{dir}, short: true, lay: func(p place) error {
			a := filepath.Join(p.f(), "a")
			return errors.Join(os.RemoveAll(a), os.Link(p.victim("etc/victim"), a))
		}},
		{name: "f holds links to root's files", kinds: []kind{dir}, lay: func(p place) error {
			return errors.Join(p.put(filepath.Join(p.f(), "a"), "/etc/victim"),
				p.put(filepath.Join(p.f(), "sub"), "/etc/victimdir"))
		}},
		{name: "f is a pipe", short: true, lay: func(p place) error { return pipe(p.f()) }, robust: true},
		{name: "f holds a pipe", kinds: []kind{dir}, lay: func(p place) error {
			return pipe(filepath.Join(p.f(), "a"))
		}, robust: true},
		{name: "f is a sparse file", kinds: []kind{file, none}, lay: func(p place) error {
			return sparse(p.f())
		}, robust: true},
		{name: "f holds a sparse file", kinds: []kind{dir}, lay: func(p place) error {
			return sparse(filepath.Join(p.f(), "a"))
		}, robust: true},
		{name: "f is a directory", kinds: []kind{file, none}, lay: func(p place) error {
			return errors.Join(os.RemoveAll(p.f()), os.Mkdir(p.f(), 0o755), own(p.f()))
		}, robust: true},
		{name: "f may not be opened", kinds: []kind{file, dir}, lay: func(p place) error {
			return errors.Join(os.Chmod(p.f(), 0), os.Chmod(p.d(), 0))
		}, robust: true},
		{name: "f and d are locked, and all that ann can open", loop: lock, robust: true},

		{name: "d and a link to root's directory change places", short: true,
			lay: func(p place) error { return p.put(p.x(), p.likeDir()) }, loop: func(p place) error {
				return exchange(p.d(), p.x())
			}},
		{name: "d and a link to bob's directory change places", lay: func(p place) error { return p.put(p.x(), "/home/bob") },
			loop: func(p place) error { return exchange(p.d(), p.x()) }},
		{name: "d and a link upwards change places",
			lay:  func(p place) error { return errors.Join(os.Symlink("../../..", p.x()), own(p.x())) },
			loop: func(p place) error { return exchange(p.d(), p.x()) }},
		{name: "f and a link to root's file change places", short: true,
			lay: func(p place) error { return p.put(p.x(), p.like()) }, loop: func(p place) error {
				return p.swap(p.f(), p.x())
			}},
		{name: "f and a pipe change places", lay: func(p place) error { return pipe(p.x()) }, loop: func(p place) error {
			return p.swap(p.f(), p.x())
		}, robust: true},
		{name: "f and root's file by another name change places", kinds: []kind{file, none},
			lay: func(p place) error { return os.Link(p.victim("etc/victim"), p.x()) }, loop: func(p place) error {
				return p.swap(p.f(), p.x())
			}},
		{name: "f is root's file for a moment", kinds: []kind{file, none}, loop: addHardLinkBriefly},
		{name: "f's subdirectory and a link to root's directory change places", kinds: []kind{dir}, short: true,
			lay:  func(p place) error { return p.put(p.x(), "/etc/victimdir") },
			loop: func(p place) error { return exchange(filepath.Join(p.f(), "sub"), p.x()) }},
		{name: "f's file and a link to root's file change places", kinds: []kind{dir}, lay: func(p place) error {
			return p.put(p.x(), "/etc/victim")
		},
			loop: func(p place) error { return exchange(filepath.Join(p.f(), "a"), p.x()) }},
		{name: "the directory above and a link to root's change places", loop: exchangeParent},
		{name: "new files are taken away for links", short: true, loop: replaceWithLinks},
		{name: "f comes and goes", loop: func(p place) error { return errors.Join(os.RemoveAll(p.f()), p.fill()) },
			robust: true},
		{name: "d comes and goes", loop: func(p place) error { _ = os.RemoveAll(p.d()); return p.lay() }, robust: true},
	}
}

// attacking limits the attacks that run at the same time to the number of processors. Each attack uses a processor for
// as long as the agent runs, so more of them would only make every run longer.
var attacking = make(chan struct{}, runtime.NumCPU())

// eachAttack runs a test for each chosen attack, as many at once as there are processors. Each test makes its own
// world.
func eachAttack(t *testing.T, do func(*testing.T, attack)) {
	t.Helper()
	needRoot(t)
	for _, a := range attacks() {
		if (a.short || full) && strings.Contains(a.name, os.Getenv("ATTACK")) {
			t.Run(a.name, func(t *testing.T) {
				t.Parallel()
				attacking <- struct{}{}
				defer func() { <-attacking }()
				do(t, a)
			})
		}
	}
}

func pipe(at string) error {
	return errors.Join(os.RemoveAll(at), unix.Mkfifo(at, 0o666), own(at))
}

func sparse(at string) error {
	err := errors.Join(os.RemoveAll(at), os.WriteFile(at, []byte(content), 0o644), own(at))
	return errors.Join(err, os.Truncate(at, 100<<30))
}

func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// swap exchanges two paths; if a does not exist, it moves b there and back.
func (p place) swap(a, b string) error {
	err := exchange(a, b)
	if p.Kind == none && err != nil {
		_ = os.Rename(b, a)
		return os.Rename(a, b)
	}
	return err
}

// addHardLinkBriefly adds f as a second name of root's file and removes it again, so that a later look finds one name.
func addHardLinkBriefly(p place) error {
	_ = os.Remove(p.f())
	err := os.Link(p.victim("etc/victim"), p.f())
	return errors.Join(err, os.Remove(p.f()), p.fill())
}

// exchangeParent exchanges the place with a link to a directory in which d belongs to root.
func exchangeParent(p place) error {
	link := p.Dir + ".x"
	if _, err := os.Lstat(link); err != nil {
		target := map[kind]string{dir: "/etc/abovetree", file: "/etc/above", none: "/etc/abovenone"}[p.Kind]
		if err := os.Symlink(p.Top+target, link); err != nil {
			return err
		}
	}
	return exchange(p.Dir, link)
}

// replaceWithLinks replaces each file that another user made in d with a link to root's file.
func replaceWithLinks(p place) error {
	for _, where := range []string{p.d(), p.f(), p.Dir} {
		names, err := os.ReadDir(where)
		if err != nil {
			continue
		}
		for _, e := range names {
			at := filepath.Join(where, e.Name())
			var st unix.Stat_t
			if unix.Lstat(at, &st) != nil || st.Uid == ann && filepath.Ext(e.Name()) == "" && e.Name()[0] != '.' ||
				st.Mode&unix.S_IFMT == unix.S_IFLNK {
				continue
			}
			target := "/etc/victim"
			if e.IsDir() {
				target = "/etc/victimdir"
			}
			stolen := filepath.Join(p.Dir, fmt.Sprintf("stolen-%d", time.Now().UnixNano()))
			if os.Symlink(p.Top+target, stolen) == nil {
				_ = exchange(at, stolen)
			}
		}
	}
	return nil
}

// lock holds locks until the process ends: on the place, and on each file of root's that ann can open.
func lock(p place) error {
	for _, at := range []string{p.f(), p.d()} {
		if err := locked(at); err != nil {
			return err
		}
	}
	for _, top := range []string{"etc", "var", "run", "srv/projects", "srv/in"} {
		_ = filepath.WalkDir(p.victim(top), func(at string, _ fs.DirEntry, err error) error {
			if err == nil {
				_ = locked(at) // ann cannot lock a file that she cannot open
			}
			return nil
		})
	}
	time.Sleep(time.Hour)
	return nil
}

func locked(at string) error {
	fd, err := unix.Open(at, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	_ = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	return unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &unix.Flock_t{Type: unix.F_RDLCK})
}

// loopArguments is the argument of an attacking process.
type loopArguments struct {
	Attack string
	Places []place
}

// attackUntilKilled repeats the attack in all places, as ann.
func attackUntilKilled(given string) {
	var l loopArguments
	if err := json.Unmarshal([]byte(given), &l); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	for _, a := range attacks() {
		if a.name != l.Attack {
			continue
		}
		for round := 0; ; round++ {
			for _, p := range l.Places {
				for range 1 + round%3 {
					if a.loop(p) != nil {
						_ = os.MkdirAll(p.d(), 0o755)
						_ = p.fill()
					}
				}
			}
		}
	}
	os.Exit(2)
}

// begin runs the first action of an attack in all places, and starts the repeated one. The caller must call stop.
func (a attack) begin(w *world, places []place) (stop func()) {
	w.Helper()
	for _, p := range places {
		w.must(p.lay())
		if p.prepare != nil {
			p.prepare()
		}
		if a.lay != nil {
			if err := a.lay(p); err != nil {
				w.Fatalf("starting the attack %q: %v", a.name, err)
			}
		}
	}
	if a.loop == nil {
		return func() {}
	}
	given, err := json.Marshal(loopArguments{a.name, places})
	w.must(err)
	cmd := exec.Command(selfProgram)
	cmd.Dir = "/"
	cmd.Env = []string{asAttacker + "=" + string(given), "GOMAXPROCS=1"}
	// Some kernels allow a user to make a hard link to another user's file (fs.protected_hardlinks=0); here a
	// capability has the same effect.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ann, Gid: ann},
		AmbientCaps: []uintptr{unix.CAP_FOWNER}, Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	w.must(cmd.Start())
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}
