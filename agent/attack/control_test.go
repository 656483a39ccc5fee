package attack_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
)

// aclFor returns an access control list that gives ann the owner's permissions.
func aclFor(uid uint32) []byte {
	return artifacttest.ACL(uid, 7, artifacttest.Rights{Owner: 7, Other: 5})
}

// writeAsAnn writes a file of ann's into the world.
func (w *world) writeAsAnn(rel, text string, mode os.FileMode) string {
	w.Helper()
	p := filepath.Join(w.dir, rel)
	w.must(os.MkdirAll(filepath.Dir(p), 0o755))
	w.must(errors.Join(os.WriteFile(p, []byte(text), 0o644), os.Chown(filepath.Dir(p), ann, ann), os.Chown(p, ann, ann),
		os.Chmod(p, mode)))
	return p
}

// grant sets access control lists for ann on a path.
func (w *world) grant(p string, names ...string) {
	w.Helper()
	for _, name := range names {
		if err := unix.Setxattr(p, "system.posix_acl_"+name, aclFor(ann), 0); errors.Is(err, unix.EOPNOTSUPP) {
			w.Skip("this filesystem has no access control lists")
		} else {
			w.must(err)
		}
	}
}

// lists returns the access control lists of a path.
func lists(p string) (all []string) {
	for _, name := range []string{"access", "default"} {
		if n, err := unix.Lgetxattr(p, "system.posix_acl_"+name, nil); err == nil && n > 0 {
			all = append(all, name)
		}
	}
	return all
}

func suidTar(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "tool", Size: 1, Mode: 0o6755})
	_, more := w.Write([]byte("x"))
	if err := errors.Join(err, more, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// applied applies each state of an SLS file in its own run, so that a refused one does not prevent the others.
func (s *states) applied(sls string) outcome {
	s.Helper()
	s.must(os.WriteFile(filepath.Join(s.dir, "srv/states/attack.sls"), []byte(sls), 0o644))
	return s.entered("call", "state.apply", "attack", "--state-output", "full", "--states", "/srv/states")
}

// TestTemplatesOfUsersAreNotRendered has ann control a template, in each of the ways in which states name a source.
func TestTemplatesOfUsersAreNotRendered(t *testing.T) {
	const payload = `{{ salt["cmd.run"]("id -u >/srv/out/pwned; echo pwned", python_shell=True) }}`
	for name, sls := range map[string]string{
		"home": "t: {file.managed: [{name: /srv/out/t}, {source: /home/ann/in/t.j2}, {template: jinja}]}",
		"follow_unsafe": "t: {file.managed: [{name: /srv/out/t}, {source: /home/ann/in/t.j2}, {template: jinja}, " +
			"{follow_unsafe: true}]}",
		"by a link": "t: {file.managed: [{name: /srv/out/t}, {source: /home/ann/link.j2}, {template: jinja}, " +
			"{follow_unsafe: true}]}",
		"writable": "t: {file.managed: [{name: /srv/out/t}, {source: 'salt://cache/t.j2'}, {template: jinja}]}",
		"script":   "t: {cmd.script: [{name: x}, {source: 'salt://cache/t.j2'}, {template: jinja}]}",
		"recurse":  "t: {file.recurse: [{name: /srv/out/d}, {source: 'salt://cache'}, {template: jinja}]}",
		"append":   "t: {file.append: [{name: /srv/out/t}, {source: 'salt://cache/t.j2'}, {template: jinja}]}",
		"import":   "{% import 'cache/t.j2' as m %}\nt: test.nop",
		"include":  "include: [cache.x]\n",
		"group":    "t: {file.managed: [{name: /srv/out/t}, {source: /srv/acl/t.j2}, {template: jinja}]}",
		"root's":   "t: {file.managed: [{name: /srv/out/t}, {source: 'salt://own.j2'}, {template: jinja}]}",
	} {
		t.Run(name, func(t *testing.T) {
			s := newStates(t, "entered")
			s.begin()
			s.writeAsAnn("home/ann/in/t.j2", payload, 0o644)
			s.writeAsAnn("srv/states/cache/t.j2", payload, 0o644)
			s.writeAsAnn("srv/states/cache/x.sls", payload+"\nt: test.nop\n", 0o644)
			s.must(errors.Join(os.WriteFile(s.dir+"/srv/states/own.j2", []byte(payload), 0o644),
				os.Symlink("/srv/states/own.j2", s.dir+"/home/ann/link.j2"),
				os.MkdirAll(s.dir+"/srv/acl", 0o755), os.WriteFile(s.dir+"/srv/acl/t.j2", []byte(payload), 0o644)))
			s.grant(s.dir+"/srv/acl/t.j2", "access")
			got := s.applied(sls)
			_, err := os.Lstat(s.dir + "/srv/out/pwned")
			if ran := err == nil; ran != (name == "root's") {
				t.Errorf("the template was rendered: %v\n%s", ran, got.out)
			}
			if name != "root's" &&
				(got.code == 0 || !strings.Contains(got.out, "can change it, and root would act on its content") ||
					strings.Contains(got.out, "follow_unsafe: true` has")) {
				t.Errorf("exit code %d:\n%s", got.code, got.out)
			}
		})
	}
}

// TestSourcesThatUsersControlAreRefused applies states whose source ann can change and whose result does not belong to
// ann.
func TestSourcesThatUsersControlAreRefused(t *testing.T) {
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGFubmFubmFubmFubmFubmFubmFubmFubmFubmFubmFubmFu ann\n"
	s := newStates(t, "entered")
	s.begin()
	s.writeAsAnn("home/ann/in/f", "* * * * * /home/ann/in/f\n", 0o755)
	s.writeAsAnn("home/ann/in/key", key, 0o644)
	s.writeAsAnn("home/ann/in/t.tar", suidTar(t), 0o644)
	s.writeAsAnn("srv/states/cache/f", "ann's\n", 0o644)
	s.writeAsAnn("srv/tree/sub/f", "ann's\n", 0o644)
	s.writeAsAnn("srv/states/kept/f", "ann's\n", 0o644)
	s.must(errors.Join(os.Remove(s.dir+"/srv/states/kept/f"), os.Symlink("/home/ann/in/f", s.dir+"/srv/states/kept/tool"),
		os.MkdirAll(s.dir+"/srv/states/signed", 0o755), os.Symlink("/home/ann/in/f", s.dir+"/srv/states/signed/tool")))
	s.must(errors.Join(os.MkdirAll(s.dir+"/srv/open", 0o777), os.Chmod(s.dir+"/srv/open", 0o777),
		os.WriteFile(s.dir+"/srv/open/f", []byte("x"), 0o644),
		os.MkdirAll(s.dir+"/srv/own", 0o755), os.WriteFile(s.dir+"/srv/own/f", []byte("root's\n"), 0o644),
		os.Symlink("/home/ann/in/f", s.dir+"/srv/own/link")))
	// The group of this directory has no members, but a unit, a setgid program or a former member may run with it.
	s.must(errors.Join(os.MkdirAll(s.dir+"/srv/shared", 0o755),
		os.WriteFile(s.dir+"/srv/shared/job", []byte("* * * * * root id\n"), 0o644), os.Chmod(s.dir+"/srv/shared/job", 0o664),
		os.Chown(s.dir+"/srv/shared/job", 0, 64500), os.Chown(s.dir+"/srv/shared", 0, 64500),
		os.Chmod(s.dir+"/srv/shared", 0o775|os.ModeSetgid)))
	refused := map[string]string{
		"managed":  "file.managed: [{name: /etc/cron.d/managed}, {source: /home/ann/in/f}]",
		"url":      "file.managed: [{name: /etc/cron.d/url}, {source: 'file:///home/ann/in/f'}]",
		"bob":      "file.managed: [{name: /home/bob/managed}, {source: /home/ann/in/f}, {user: bob}]",
		"anyone":   "file.managed: [{name: /etc/cron.d/anyones}, {source: /srv/open/f}]",
		"link":     "file.managed: [{name: /etc/cron.d/link}, {source: /srv/own/link}]",
		"group":    "file.managed: [{name: /etc/cron.d/group}, {source: /srv/shared/job}]",
		"tree":     "file.managed: [{name: /etc/cron.d/tree}, {source: 'salt://cache/f'}]",
		"recurse":  "file.recurse: [{name: /etc/recurse}, {source: 'salt://cache'}]",
		"kept":     "file.recurse: [{name: /etc/kept}, {source: 'salt://kept'}, {keep_symlinks: true}]",
		"append":   "file.append: [{name: /etc/victim.conf}, {source: /home/ann/in/f}, {template: ''}]",
		"copy":     "file.copy: [{name: /etc/cron.d/copy}, {source: /home/ann/in/f}]",
		"copytree": "file.copy: [{name: /etc/copytree}, {source: /srv/tree}]",
		"script":   "cmd.script: [{name: /home/ann/in/f}]",
		"runas":    "cmd.script: [{name: /home/ann/in/f}, {runas: bob}]",
		"cron":     "cron.file: [{name: /home/ann/in/f}]",
		"key":      "ssh_auth.present: [{name: key}, {user: root}, {source: /home/ann/in/key}]",
		"archive":  "archive.extracted: [{name: /etc/archive}, {source: /home/ann/in/t.tar}, {enforce_toplevel: false}]",
	}
	taken := map[string]string{
		"own":      "file.managed: [{name: /home/ann/own}, {source: /home/ann/in/f}]",
		"given":    "file.managed: [{name: /srv/out/given}, {source: /home/ann/in/f}, {user: ann}]",
		"follow":   "file.managed: [{name: /srv/out/follow}, {source: /home/ann/in/f}, {follow_unsafe: true}]",
		"root":     "file.managed: [{name: /srv/out/roots}, {source: /srv/own/f}]",
		"signed":   "file.recurse: [{name: /srv/out/signed}, {source: 'salt://signed'}, {keep_symlinks: true}]",
		"ours":     "file.recurse: [{name: /home/ann/kept}, {source: 'salt://kept'}, {keep_symlinks: true}]",
		"preserve": "file.copy: [{name: /srv/out/preserve}, {source: /home/ann/in/f}, {preserve: true}]",
		"copied":   "file.copy: [{name: /home/ann/copied}, {source: /srv/tree/sub}]",
		"key ann":  "ssh_auth.present: [{name: key}, {user: ann}, {source: /home/ann/in/key}]",
		"unpacked": "archive.extracted: [{name: /home/ann/unpacked}, {source: /home/ann/in/t.tar}, {enforce_toplevel: " +
			"false}]",
	}
	for id, state := range refused {
		got := s.applied("'" + id + "': {" + state + "}")
		if id == "cron" && strings.Contains(got.out, "crontab is not installed") {
			continue
		}
		if got.code == 0 || !strings.Contains(got.out, "refused, since ") ||
			!strings.Contains(got.out, "could so change ") && !strings.Contains(got.out, "root would act on its content") {
			t.Errorf("%s: exit code %d:\n%s", id, got.code, got.out)
		}
	}
	for id, state := range taken {
		if got := s.applied("'" + id + "': {" + state + "}"); got.code != 0 {
			t.Errorf("%s: exit code %d:\n%s", id, got.code, got.out)
		}
	}
	for _, p := range []string{"etc/cron.d/managed", "etc/cron.d/url", "home/bob/managed", "etc/cron.d/anyones",
		"etc/cron.d/link",
		"etc/cron.d/tree", "etc/cron.d/group", "etc/recurse/f", "etc/kept/tool",
		"etc/cron.d/copy", "etc/copytree", "etc/archive/tool"} {
		if _, err := os.Lstat(filepath.Join(s.dir, p)); err == nil {
			t.Errorf("%s was created", p)
		}
	}
	got := s.applied("told: {file.managed: [{name: /etc/cron.d/told}, {source: /home/ann/in/f}]}")
	for _, want := range []string{"/home/ann/in/f: refused, since user ann controls /home/ann",
		"could so change /etc/cron.d/told", "`follow_unsafe: true`"} {
		if !strings.Contains(strings.Join(strings.Fields(got.out), " "), want) {
			t.Errorf("the refusal lacks %q:\n%s", want, got.out)
		}
	}
}

// TestFileOpenedByUserIsReplaced has ann hold a program with the content of the state open for writing while root takes
// it over.
func TestFileOpenedByUserIsReplaced(t *testing.T) {
	s := newStates(t, "entered")
	for name, sls := range map[string]string{
		"managed": "t: {file.managed: [{name: /srv/app/sh}, {user: root}, {group: root}, {mode: '0755'}, {contents: good}]}",
		"mode":    "t: {file.managed: [{name: /srv/open/sh}, {mode: '0755'}, {contents: good}]}",
		"owner":   "t: {file.managed: [{name: /srv/app/sh}, {user: root}, {replace: false}]}",
		"recurse": "a: {file.directory: [{name: /srv/app}, {user: root}, {group: root}, {recurse: [user, group]}]}\n" +
			"t: {file.managed: [{name: /srv/app/sh}, {contents: good}]}",
		"call": "t: {module.run: [{name: file.chown}, {path: /srv/app/sh}, {user: root}, {group: root}]}",
	} {
		t.Run(name, func(t *testing.T) {
			s.T = t
			s.begin()
			at := filepath.Join(s.dir, "srv/app/sh")
			s.writeAsAnn("srv/app/sh", "good\n", 0o755)
			if name == "mode" {
				at = s.writeAsAnn("srv/open/sh", "good\n", 0o777)
				s.must(errors.Join(os.Chown(filepath.Dir(at), 0, 0), os.Chown(at, 0, 0), os.Chmod(at, 0o777)))
			}
			held, err := os.OpenFile(at, os.O_RDWR, 0)
			s.must(err)
			defer held.Close()
			got := s.applied(sls)
			_, err = held.WriteAt([]byte("EVIL"), 0)
			s.must(err)
			var st unix.Stat_t
			s.must(unix.Stat(at, &st))
			if text, err := os.ReadFile(at); string(text) != "good\n" || st.Uid != 0 || st.Mode&0o022 != 0 || got.code != 0 {
				t.Errorf("owner %d, mode %o, content %q, %v; exit code %d:\n%s", st.Uid, st.Mode, text, err, got.code, got.out)
			}
		})
	}
}

// TestListsOfUsersGoWithTheirOwner has ann leave access control lists on files that root takes over.
func TestListsOfUsersGoWithTheirOwner(t *testing.T) {
	s := newStates(t, "entered")
	s.begin()
	for _, dir := range []string{"home/ann/app", "home/ann/d"} {
		s.grant(filepath.Dir(s.writeAsAnn(dir+"/tool", "x", 0o755)), "access", "default")
	}
	s.grant(s.writeAsAnn("srv/in2/secret.conf", "", 0o600), "access")
	s.must(os.Chown(s.dir+"/srv/in2", 0, 0))
	kept := filepath.Join(s.dir, "srv/in2/kept.conf")
	s.must(os.WriteFile(kept, []byte("old"), 0o600))
	s.grant(kept, "access")
	got := s.applied(`
app: {file.directory: [{name: /home/ann/app}, {user: root}, {group: root}, {mode: '0775'}, {recurse: [user, group]}]}
replaced: {file.managed: [{name: /srv/in2/secret.conf}, {contents: secret}, {user: root}, {group: root}, {mode: '0660'}]}
new: {file.managed: [{name: /home/ann/d/secret.conf}, {contents: secret}, {user: root}, {group: root}, {mode: '0660'}]}
made: {file.directory: [{name: /home/ann/d/sub}, {user: root}, {group: root}, {mode: '0775'}]}
kept: {file.managed: [{name: /srv/in2/kept.conf}, {contents: new}, {user: root}, {group: root}, {mode: '0640'}]}
`)
	if got.code != 0 {
		t.Fatalf("exit code %d:\n%s", got.code, got.out)
	}
	for _, p := range []string{"home/ann/app", "home/ann/app/tool", "srv/in2/secret.conf", "home/ann/d/secret.conf",
		"home/ann/d/sub"} {
		if left := lists(filepath.Join(s.dir, p)); len(left) > 0 {
			t.Errorf("%s still has the lists %v", p, left)
		}
	}
	if len(lists(kept)) != 1 {
		t.Error("the list that root had set on a file was removed")
	}
}

// TestGitRefusesCloneWithWriteACL gives ann write access to the directory of root's clone.
func TestGitRefusesCloneWithWriteACL(t *testing.T) {
	for _, list := range []string{"access", "default"} {
		s := newStates(t, "entered")
		s.begin()
		s.must(os.MkdirAll(s.dir+"/srv/clones", 0o755))
		s.grant(s.dir+"/srv/clones", list)
		got := s.applied("t: {git.latest: [{name: /srv/in/repo.git}, {target: /srv/clones/repo}]}")
		if _, err := os.Lstat(s.dir + "/srv/clones/repo"); err == nil || got.code == 0 ||
			!strings.Contains(got.out, "setfacl") {
			t.Errorf("with a list for %s: exit code %d:\n%s", list, got.code, got.out)
		}
	}
}

// TestSetuidProgramWithForeignContentIsRefused applies states that would set setuid bits of root on a file with ann's
// content, or at a path that she controls.
func TestSetuidProgramWithForeignContentIsRefused(t *testing.T) {
	s := newStates(t, "entered")
	for name, c := range map[string]struct {
		sls     string
		refused bool
	}{
		"taken over": {"a: {file.directory: [{name: /home/ann/z}, {user: root}, {recurse: [user, group]}]}\n" +
			"b: {file.managed: [{name: /home/ann/z/sh}, {user: root}, {mode: '4755'}, {replace: false}]}", true},
		"taken over elsewhere": {"a: {file.directory: [{name: /srv/app}, {user: root}, {group: root}, {recurse: [user, " +
			"group]}]}\nb: {file.managed: [{name: /srv/app/sh}, {user: root}, {mode: '4755'}, {replace: false}]}", true},
		"kept": {"a: {file.managed: [{name: /srv/only/sh}, {user: root}, {group: root}, {mode: '4755'}, " +
			"{replace: False}]}", true},
		"copied beside": {"a: {file.directory: [{name: /home/ann/z}, {user: root}]}\n" +
			"b: {file.copy: [{name: /home/ann/z/sh2}, {source: /home/ann/z/sh}, {user: root}, {mode: '4755'}]}", true},
		"copied": {"a: {file.copy: [{name: /srv/out/q}, {source: /home/ann/z/sh}, {user: root}, {mode: '4755'}]}",
			true},
		"source":   {"a: {file.managed: [{name: /srv/out/q}, {source: /home/ann/z/sh}, {user: root}, {mode: '4755'}]}", true},
		"contents": {"a: {file.managed: [{name: /home/ann/z/q}, {contents: x}, {user: root}, {mode: '4755'}]}", true},
		"archive": {"a: {archive.extracted: [{name: /srv/out/x}, {source: /home/ann/z/suid.tar}, " +
			"{enforce_toplevel: false}, {follow_unsafe: true}, {preserve: true}]}", false},
		"root's archive": {"a: {archive.extracted: [{name: /srv/out/x}, {source: /srv/in/suid.tar}, " +
			"{enforce_toplevel: false}]}", false},
		"root's archive for root": {"a: {archive.extracted: [{name: /srv/out/x}, {source: /srv/in/suid.tar}, " +
			"{enforce_toplevel: false}, {user: root}]}", false},
		"archive at ann's": {"a: {archive.extracted: [{name: /home/ann/z/x}, {source: /srv/in/suid.tar}, " +
			"{enforce_toplevel: false}, {preserve: true}]}", false},
	} {
		t.Run(name, func(t *testing.T) {
			s.T = t
			s.begin()
			s.must(os.RemoveAll(s.dir + "/srv/app"))
			s.writeAsAnn("home/ann/z/sh", "#!/bin/sh\n", 0o755)
			s.writeAsAnn("srv/app/sh", "#!/bin/sh\n", 0o755)
			s.writeAsAnn("srv/only/sh", "#!/bin/sh\n", 0o755)
			s.must(errors.Join(os.Chown(s.dir+"/srv/only", 0, 0), os.Chmod(s.dir+"/srv/only", 0o700)))
			s.writeAsAnn("home/ann/z/suid.tar", suidTar(t), 0o644)
			s.must(os.WriteFile(s.dir+"/srv/in/suid.tar", []byte(suidTar(t)), 0o644))
			got := s.applied(c.sls)
			if found := setuidFiles(s.dir+"/home", s.dir+"/srv"); len(found) > 0 {
				t.Errorf("these files have setuid bits: %v\n%s", found, got.out)
			}
			if c.refused == (got.code == 0) || c.refused && !strings.Contains(got.out, "setuid and setgid bits are refused") {
				t.Errorf("exit code %d:\n%s", got.code, got.out)
			}
		})
	}
	s.T = t
	s.begin()
	s.must(os.WriteFile(s.dir+"/srv/in/suid.tar", []byte(suidTar(t)), 0o644))
	got := s.applied(
		"a: {file.managed: [{name: /srv/out/q}, {contents: x}, {user: root}, {mode: '4755'}]}\n" +
			"b: {archive.extracted: [{name: /srv/out/x}, {source: /srv/in/suid.tar}, {enforce_toplevel: false}, {preserve: " +
			"true}]}")
	if found := setuidFiles(s.dir + "/srv"); len(found) != 2 {
		t.Errorf("of root's files, these have setuid bits: %v\n%s", found, got.out)
	}
}

// setuidFiles lists the files of root's below directories that have setuid or setgid bits.
func setuidFiles(dirs ...string) (all []string) {
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			info, err := d.Info()
			if err == nil && info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
				all = append(all, p)
			}
			return err
		})
	}
	return all
}
