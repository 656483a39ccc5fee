//go:build integration

package cmd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// makeWheels makes wheels of Python packages of Debian, with their dependencies, for use without a package index.
const makeWheels = `
import importlib.metadata as m, pathlib, sys, zipfile
out = pathlib.Path(sys.argv[1]); out.mkdir(parents=True, exist_ok=True)
for name in sys.argv[2:]:
    d = m.distribution(name)
    meta = d._path
    site = meta.parent
    tops = (d.read_text("top_level.txt") or name).split()
    stem = d.metadata["Name"].replace("-", "_") + "-" + d.version
    files = {}
    for top in tops:
        for p in [site / (top + ".py")] + sorted((site / top).rglob("*")):
            if p.is_file() and "__pycache__" not in p.parts:
                files[str(p.relative_to(site))] = p.read_bytes()
    native = any(f.endswith(".so") for f in files)
    tag = "cp311-cp311-linux_x86_64" if native else "py3-none-any"
    info = stem + ".dist-info/"
    lines = ["Metadata-Version: 2.1", "Name: " + d.metadata["Name"], "Version: " + d.version]
    lines += ["Requires-Dist: " + r for r in d.requires or [] if "extra ==" not in r]
    files[info + "METADATA"] = ("\n".join(lines) + "\n").encode()
    files[info + "WHEEL"] = ("Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: %s\nTag: %s\n" % (str(not native).lower(), tag)).encode()
    scripts = [e for e in d.entry_points if e.group == "console_scripts"]
    if scripts:
        files[info + "entry_points.txt"] = ("[console_scripts]\n" + "".join("%s = %s\n" % (e.name, e.value) for e in scripts)).encode()
    files[info + "RECORD"] = "".join(f + ",,\n" for f in [*files, info + "RECORD"]).encode()
    with zipfile.ZipFile(out / ("%s-%s.whl" % (stem, tag)), "w") as z:
        for f in sorted(files):
            z.writestr(f, files[f])
`

// TestPythonServiceFromAllForms runs the Flask application of docs/examples.md: built in a clean Debian, promoted from
// test to production with proof, and then started from the deployed artifact, from the .deb and from the image, in
// roots that have Python without Flask.
func TestPythonServiceFromAllForms(t *testing.T) {
	clean := cleaner(t)
	r := newReader(t)
	r.wheels(clean)
	tag(t, filepath.Join(r.dir, "notes"))
	debian := clean("python3")
	if out, err := debian.try("python3", "-c", "import flask"); err == nil {
		t.Fatalf("the root already has Flask: %s", out)
	}
	debian.must("rm", "-rf", "/var/cache/apt", "/var/lib/apt/lists")
	test, production := copyRoot(t, debian), copyRoot(t, debian)
	for name, root := range map[string]cleanRoot{"debian": debian, "test-host": test, "production-host": production} {
		if err := os.Symlink(root.Root, filepath.Join(r.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(test.Root, "etc/hostname"), []byte("notes-testing-useast1-1\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	r.must("corpus keys new", "corpus store init", "corpus keys new attestation --keys attest-keys",
		"corpus project add attestation --key attest-keys/attestation.pub")
	text, err := os.ReadFile("../docs/examples.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(string(text), "## A Flask application")
	shown := shownCommands(strings.ReplaceAll(page, "<!-- not run:", "<!-- run:"))
	if len(shown) < 5 {
		t.Fatalf("the page shows %q", shown)
	}
	r.must(shown...)

	t.Run("built again elsewhere", func(t *testing.T) {
		again := "again/far/down/below"
		r.must("mkdir -p " + again + "/tmp && git clone -q notes " + again + "/notes && base=$PWD/debian && cd " + again +
			" && umask 077 && " +
			"TZ=Asia/Kathmandu LC_ALL=tr_TR.UTF-8 USER=somebody TMPDIR=$PWD/tmp " +
			"corpus build ./notes -o notes-1.0.tar.zst -o notes-1.0.deb -o notes-1.0.oci.tar --image-base $base")
		for _, ending := range []string{".tar.zst", ".deb", ".oci.tar", ".spdx.json", ".provenance.json"} {
			if out, err := r.run("cmp notes-1.0" + ending + " " + again + "/notes-1.0" + ending); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		}
	})
	t.Run("deployed", func(t *testing.T) {
		test.t, production.t = t, t
		notesWork(t, test.serve("NOTES_ADDRESS", "/srv/projects/notes/current/serve"))
		notesWork(t, production.serve("NOTES_ADDRESS", "/srv/projects/notes/current/serve"))
	})
	t.Run("deb", func(t *testing.T) {
		root := copyRoot(t, debian)
		root.copyIn(filepath.Join(r.dir, "notes-1.0.deb"), "/notes.deb")
		root.must("dpkg", "-i", "/notes.deb")
		notesWork(t, root.serve("NOTES_ADDRESS", "/opt/notes/serve"))
	})
	t.Run("image", func(t *testing.T) {
		root, command := imageRoot(t, filepath.Join(r.dir, "notes-1.0.oci.tar"))
		notesWork(t, root.serve("NOTES_ADDRESS", command...))
	})
	t.Run("refused where Python is missing", func(t *testing.T) {
		bare := clean()
		out, err := r.run("corpus-agent deploy notes production --trust-root root.json --root " + bare.Root)
		if err == nil || !strings.Contains(out, "python3.11 does not exist") {
			t.Errorf("a host without Python: %v\n%s", err, out)
		}
	})
}

// wheels puts wheels of the application's dependencies beside it.
func (r *reader) wheels(clean func(...string) cleanRoot) {
	r.t.Helper()
	root := clean("python3-flask", "python3-waitress")
	if err := os.WriteFile(filepath.Join(root.Root, "wheels.py"), []byte(makeWheels), 0o644); err != nil {
		r.t.Fatal(err)
	}
	root.must("python3", "/wheels.py", "/wheels", "flask", "werkzeug", "jinja2", "markupsafe", "itsdangerous", "click",
		"colorama", "waitress")
	if out, err := exec.Command("cp", "-r", filepath.Join(root.Root, "wheels"),
		filepath.Join(r.dir, "notes/wheels")).CombinedOutput(); err != nil {
		r.t.Fatalf("%v: %s", err, out)
	}
}

func notesWork(t *testing.T, url string) {
	t.Helper()
	if got := ask(t, url+"version", ""); got != "notes 1.0\n" {
		t.Errorf("the version is %q", got)
	}
	if got := ask(t, url, ""); got != "no notes\n" {
		t.Errorf("the page is %q", got)
	}
	if got := ask(t, url, "milk & bread"); strings.TrimSpace(got) != `{"count":1}` {
		t.Errorf("adding a note gives %q", got)
	}
	if got := ask(t, url, ""); got != "milk &amp; bread\n" {
		t.Errorf("the page is %q", got)
	}
}

// copyRoot returns a copy of a root.
func copyRoot(t *testing.T, of cleanRoot) cleanRoot {
	t.Helper()
	root := cleanRoot{of.Base, t}
	base := *of.Base
	base.Root = filepath.Join(t.TempDir(), "root")
	if out, err := exec.Command("cp", "-a", "--reflink=auto", of.Root, base.Root).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	root.Base = &base
	return root
}

// TestFailingTemplateCheckCausesRollback has a host in a clean root, where commands are run, deploy a release whose
// rendered configuration fails its check.
func TestFailingTemplateCheckCausesRollback(t *testing.T) {
	clean := cleaner(t)
	root := clean()
	r := newReader(t)
	r.store = "file://" + root.Root + "/store"
	if err := os.Mkdir(filepath.Join(root.Root, "store"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.must("corpus keys new", "corpus store init")
	publish := func(version, template string) {
		tree := filepath.Join(r.dir, "app-"+version)
		for name, text := range map[string]string{
			"salt/config/states/top.sls": "base: {}\n", "app.conf.j2": template,
			"corpus.yaml": "templates:\n- {source: app.conf.j2, target: /etc/app.conf, check: 'grep -q ^port='}\n",
		} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(tree, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(tree, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		r.must("corpus build "+tree+" -o app-"+version+".tar.zst",
			"corpus publish myapp "+version+" app-"+version+".tar.zst --channel testing")
	}
	root.copyIn(filepath.Join(bin(t), "corpus-agent"), "/usr/local/bin/corpus-agent")
	root.copyIn(filepath.Join(r.dir, "keys/root.json"), "/root.json")
	deploy := []string{"corpus-agent", "deploy", "myapp", "testing", "--store", "file:///store", "--trust-root",
		"/root.json"}
	conf := func() string {
		data, err := os.ReadFile(filepath.Join(root.Root, "etc/app.conf"))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	publish("1", "port=80\n")
	root.must(deploy...)
	publish("2", "prt=81\n")
	out, err := root.try(deploy...)
	if err == nil || !strings.Contains(err.Error(), "exit status 7") ||
		!strings.Contains(out, "check_cmd refuses the new content of /etc/app.conf") {
		t.Errorf("the deploy of a file that its check refuses: %v\n%s", err, out)
	}
	if got := conf(); got != "port=80\n" {
		t.Errorf("the file is %q", got)
	}
	if link, err := os.Readlink(filepath.Join(root.Root, "srv/projects/myapp/current")); err != nil ||
		!strings.Contains(link, "/1-") {
		t.Errorf("current is %q, %v", link, err)
	}
	publish("3", "port=82\n")
	root.must(deploy...)
	if got := conf(); got != "port=82\n" {
		t.Errorf("the file is %q", got)
	}
}
