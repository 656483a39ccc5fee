package pipeline_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/corpus-agent/corpus-agent/artifact/needs"
	"github.com/corpus-agent/corpus-agent/packaging/pipeline"
)

// writeTree writes a source tree.
func writeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "myapp")
	for name, text := range files {
		file, mode := filepath.Join(dir, name), os.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// outputs returns all forms, in a new directory.
func outputs(t *testing.T) []string {
	t.Helper()
	stem := filepath.Join(t.TempDir(), "myapp-1.0")
	return []string{stem + ".tar.zst", stem + ".deb", stem + ".rpm", stem + ".oci.tar"}
}

func buildAll(t *testing.T, tree string) pipeline.Result {
	t.Helper()
	r, err := pipeline.Make(t.Context(), pipeline.Request{Source: tree, Outputs: outputs(t), Version: "1.0", Tool: "test"})
	if err != nil {
		t.Fatal(withLog(err))
	}
	return r
}

// withLog adds the output of the build to an error.
func withLog(err error) error {
	if _, log, found := strings.Cut(err.Error(), "its log is "); found {
		if data, readErr := os.ReadFile(strings.TrimSuffix(log, ")")); readErr == nil {
			return errors.Join(err, errors.New(string(data)))
		}
	}
	return err
}

// buildTwice builds two copies of a tree, the second with another umask, time zone and language, and in a deeper
// directory, and expects the same bytes. TestTwoBuildsAreTheSameToDiffoscope does the same with several users.
func buildTwice(t *testing.T, files map[string]string) pipeline.Result {
	t.Helper()
	first := buildAll(t, writeTree(t, files))
	deep := filepath.Join(t.TempDir(), strings.Repeat("a directory of a longer name/", 4), "tmp")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	tree := filepath.Join(deep, "..", "myapp")
	if err := os.CopyFS(tree, os.DirFS(writeTree(t, files))); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"TMPDIR": deep, "TZ": "Asia/Kathmandu", "LC_ALL": "tr_TR.UTF-8",
		"LANG": "tr_TR.UTF-8", "USER": "somebody"} {
		t.Setenv(name, value)
	}
	before := syscall.Umask(0o077)
	second := buildAll(t, tree)
	syscall.Umask(before)
	if first.Content != second.Content || first.Content == "" {
		t.Errorf("contents are %q and %q", first.Content, second.Content)
	}
	for i, name := range append(slices.Clone(first.Outputs), first.Statements...) {
		other := append(slices.Clone(second.Outputs), second.Statements...)[i]
		if a, b := digest(t, name), digest(t, other); a != b {
			t.Errorf("%s differs between two builds", filepath.Base(name))
		}
	}
	return first
}

func digest(t *testing.T, file string) string {
	t.Helper()
	sum := sha256.Sum256(read(t, file))
	return hex.EncodeToString(sum[:])
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// entries reads a tar archive.
func entries(t *testing.T, r io.Reader) map[string]string {
	t.Helper()
	found := map[string]string{}
	archive := tar.NewReader(r)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		found[strings.TrimSuffix(h.Name, "/")] = string(data)
	}
}

func unpacked(t *testing.T, artifact string) map[string]string {
	t.Helper()
	z, err := zstd.NewReader(bytes.NewReader(read(t, artifact)))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	return entries(t, z)
}

// layer reads an image layout, checks the digests that lead to its layer, and unpacks that.
func layer(t *testing.T, image string) (files map[string]string, labels map[string]string) {
	t.Helper()
	layout := entries(t, bytes.NewReader(read(t, image)))
	blob := func(digest string) []byte {
		data, ok := layout["blobs/sha256/"+strings.TrimPrefix(digest, "sha256:")]
		if sum := sha256.Sum256([]byte(data)); !ok || "sha256:"+hex.EncodeToString(sum[:]) != digest {
			t.Fatalf("the layout has no %s", digest)
		}
		return []byte(data)
	}
	var index struct{ Manifests []struct{ Digest string } }
	decode(t, []byte(layout["index.json"]), &index)
	var manifest struct {
		Config struct{ Digest string }
		Layers []struct{ Digest, MediaType string }
	}
	decode(t, blob(index.Manifests[0].Digest), &manifest)
	var config struct {
		Architecture string
		Config       struct{ Labels map[string]string }
	}
	decode(t, blob(manifest.Config.Digest), &config)
	if config.Architecture != runtime.GOARCH || len(manifest.Layers) != 1 {
		t.Errorf("the image has the architecture %q and %d layers", config.Architecture, len(manifest.Layers))
	}
	z, err := gzip.NewReader(bytes.NewReader(blob(manifest.Layers[0].Digest)))
	if err != nil {
		t.Fatal(err)
	}
	return entries(t, z), config.Config.Labels
}

func decode(t *testing.T, data []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatal(err)
	}
}

func TestTreeBecomesAllFormsWithOneContent(t *testing.T) {
	r := buildTwice(t, map[string]string{
		"corpus.yaml": "builder: tree\nfiles: [app, corpus.yaml, myapp.service, share]\nleave_out: ['*.tmp']\n" +
			"units: [myapp.service]\npackage: {description: An app, depends: [libc6]}\n",
		"app": "#!/bin/sh\necho hello\n", "myapp.service": "[Service]\nExecStart=/opt/myapp/app\n", "share/a/b": "b",
		"share/c.tmp": "", "notes": "no part of it",
	})
	want := []string{".corpus", ".corpus/release.json", "app", "corpus.yaml", "myapp.service", "share", "share/a",
		"share/a/b"}
	files := unpacked(t, r.Outputs[0])
	if names := slices.Sorted(maps.Keys(files)); !slices.Equal(names, want) {
		t.Errorf("the artifact has %q, want %q", names, want)
	}
	var release needs.Release
	decode(t, []byte(files[needs.File]), &release)
	if release.Content != r.Content || release.Version != "1.0" || release.Name != "myapp" {
		t.Errorf("the description of the release is %+v", release)
	}
	inside, labels := layer(t, r.Outputs[3])
	if inside["opt/myapp/app"] != files["app"] || inside["opt/myapp/"+needs.File] != files[needs.File] ||
		labels["io.corpus-agent.content"] != r.Content {
		t.Errorf("the image has %q with labels %q", slices.Sorted(maps.Keys(inside)), labels)
	}
	if rpm := read(t, r.Outputs[2]); !bytes.HasPrefix(rpm, []byte{0xed, 0xab, 0xee, 0xdb}) ||
		!bytes.Contains(rpm, []byte(r.Content)) || !bytes.Contains(rpm, []byte("noarch")) {
		t.Error("the rpm is invalid, or does not name the content")
	}
	for _, name := range append([]string{r.Outputs[1]}, r.Statements...) {
		if !bytes.Contains(read(t, name), []byte(strings.TrimPrefix(r.Content, "sha256:"))) && filepath.Ext(name) != ".deb" {
			t.Errorf("%s does not name the content", name)
		}
	}
	if !bytes.Contains(read(t, r.Statements[1]), []byte(digest(t, r.Outputs[0]))) {
		t.Error("the provenance does not name the artifact")
	}
	debian(t, r)
}

// debian reads the package with the system's own program.
func debian(t *testing.T, r pipeline.Result) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Log("dpkg-deb does not exist: the package is not read back")
		return
	}
	out, err := exec.Command("dpkg-deb", "--info", r.Outputs[1]).CombinedOutput()
	for _, want := range []string{"Package: myapp", "Version: 1.0", "Architecture: all", "Depends: libc6",
		"Corpus-Content-Digest: " + r.Content} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("dpkg-deb does not see %q (%v):\n%s", want, err, out)
		}
	}
	dir := t.TempDir()
	if out, err := exec.Command("dpkg-deb", "--extract", r.Outputs[1], dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command(filepath.Join(dir, "opt/myapp/app")).Output(); err != nil || string(out) != "hello\n" {
		t.Errorf("the package's program prints %q, %v", out, err)
	}
	read(t, filepath.Join(dir, "usr/lib/systemd/system/myapp.service"))
}

func TestACommandsOutputIsReleased(t *testing.T) {
	r := buildTwice(t, map[string]string{
		"corpus.yaml":  "builder: command\nbuild: {command: [sh, build.sh], output: public}\n",
		"build.sh":     "mkdir -p public/css && sed s/NAME/world/ index.in >public/index.html && : >public/css/a.css\n",
		"index.in":     "hello NAME\n",
		"hooks/post/1": "#!/bin/sh\n",
	})
	files := unpacked(t, r.Outputs[0])
	if files["index.html"] != "hello world\n" || files["hooks/post/1"] == "" || files["corpus.yaml"] == "" {
		t.Errorf("the release is %q", files)
	}
	if _, there := files["index.in"]; there {
		t.Error("the source is in the release")
	}
}

func TestHooksOfTheRecipeRunInTheirOrder(t *testing.T) {
	for name, builder := range map[string]string{"tree": "tree",
		"command": "command\nbuild: {command: [mkdir, out], output: out}"} {
		r := buildAll(t, writeTree(t, map[string]string{
			"corpus.yaml": "builder: " + builder + "\nhooks: {pre_release: [bin/z.sh, a], post_release: [bin/z.sh]}\n",
			"bin/z.sh":    "echo z\n", "a": "echo a\n",
		}))
		files := unpacked(t, r.Outputs[0])
		for file, want := range map[string]string{"pre-release.d/01-z.sh": "echo z\n", "pre-release.d/02-a": "echo a\n",
			"post-release.d/01-z.sh": "echo z\n"} {
			if files["hooks/"+file] != want {
				t.Errorf("%s: hooks/%s is %q, want %q", name, file, files["hooks/"+file], want)
			}
		}
	}
	tree := writeTree(t, map[string]string{"corpus.yaml": "builder: tree\nhooks:\n  post_release: [gone]\n"})
	_, err := pipeline.Make(t.Context(), pipeline.Request{Source: tree, Outputs: outputs(t), Version: "1"})
	if err == nil || !strings.Contains(err.Error(), "corpus.yaml:3:18: gone is not in the tree") {
		t.Errorf("a hook that does not exist: %v", err)
	}
}

func TestFailingBuildKeepsOnlyItsLog(t *testing.T) {
	tree := writeTree(t,
		map[string]string{"corpus.yaml": "builder: command\nbuild: {command: [sh, -c, 'echo so far " +
			"https://ann:pw@host/simple >&2; touch made; exit 7']}\n"})
	files := outputs(t)
	_, err := pipeline.Make(t.Context(), pipeline.Request{Source: tree, Outputs: files, Version: "1"})
	if err == nil || !strings.Contains(err.Error(), "exit status 7") || !strings.Contains(err.Error(), files[0]+".log") {
		t.Fatalf("the build failed with %v", err)
	}
	if log := string(read(t, files[0]+".log")); strings.Contains(log, "pw") || !strings.HasPrefix(log, "so far https://") {
		t.Errorf("the log is %q", log)
	}
	if info, err := os.Stat(files[0] + ".log"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the log is %v, %v", info, err)
	}
	left, err := os.ReadDir(filepath.Dir(files[0]))
	if err != nil || len(left) != 1 {
		t.Errorf("the build left %v, %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(tree, "made")); err == nil {
		t.Error("the build wrote into the source tree")
	}
}

func TestFailedOutputRemovesAllOutputs(t *testing.T) {
	dir := t.TempDir()
	files := []string{filepath.Join(dir, "a.tar.zst"), filepath.Join(dir, "nowhere", "a.deb")}
	_, err := pipeline.Make(t.Context(),
		pipeline.Request{Source: writeTree(t, map[string]string{"corpus.yaml": "builder: tree\n", "a": "a"}), Outputs: files,
			Version: "1"})
	if err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("writing to a directory that does not exist: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("the build left %v, %v", left, err)
	}
}

func TestInvalidRecipeStopsTheBuild(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		out   string
		want  []string
	}{
		"unknown keys": {map[string]string{"corpus.yaml": "bilder: go\nfile: [x]\n"}, "a.deb",
			[]string{`corpus.yaml:1:1: unknown key "bilder"`, `corpus.yaml:2:1: unknown key "file"`}},
		"missing files": {map[string]string{"corpus.yaml": "units: [units/a.service]\npackage: {post_install: b.sh}\n"},
			"a.deb", []string{"corpus.yaml:1:9: units/a.service is not in the tree",
				"corpus.yaml:2:25: b.sh is not in the tree"}},
		"missing parts": {map[string]string{"corpus.yaml": "builder: tree\nfiles:\n- nope\n- x\n"}, "a.tar.zst",
			[]string{"corpus.yaml:3:3: nope is not in the tree"}},
		"a misspelt unit": {map[string]string{"corpus.yaml": "units: [myap.service, nginx.service]\n",
			"myapp.service": "[Service]\n"}, "a.deb",
			[]string{"corpus.yaml:1:9: the unit myap.service is not in the tree"}},
		"a directory": {map[string]string{"corpus.yaml": "builder: tree\nunits: [d]\n", "d/x": ""}, "a.deb",
			[]string{"corpus.yaml:2:9: d is not a file"}},
		"no files": {map[string]string{"corpus.yaml": "builder: command\nbuild: {command: [sh, -c, 'mkfifo p q']}\n"},
			"a.tar.zst", []string{"p: it is not a file, directory or link", "q: it is not a file, directory or link"}},
		"no builder": {map[string]string{"corpus.yaml": "build: {command: [make]}\n"}, "a.tar.zst",
			[]string{"corpus.yaml:1:8: build is set, but the builder"}},
		"another form": {map[string]string{}, "a.exe", []string{"a.exe: corpus build does not write that form"}},
		"a secret": {map[string]string{"corpus.yaml": "builder: tree\n", "id_rsa": "x"}, "a.deb",
			[]string{"id_rsa: its name is that of a secret"}},
		"no command": {map[string]string{"corpus.yaml": "builder: command\n"}, "a.deb", []string{"build.command is missing"}},
		"no part": {map[string]string{"corpus.yaml": "builder: command\nbuild: {command: [mkdir, out], output: out}\n" +
			"files: [app]\n"}, "a.deb", []string{"the recipe names app, which the build did not make"}},
		"no output": {map[string]string{"corpus.yaml": "builder: command\nbuild: {command: ['true'], output: out}\n"},
			"a.deb", []string{"the command did not make the directory out"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c.files["x"] = ""
			_, err := pipeline.Make(t.Context(), pipeline.Request{Source: writeTree(t, c.files),
				Outputs: []string{filepath.Join(dir, c.out)}, Version: "1"})
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("the build ends with %v, want %q", err, want)
				}
			}
			if left, _ := os.ReadDir(dir); len(left) != 0 {
				t.Errorf("the build left %v", left)
			}
		})
	}
}

func TestCheckListsDifferences(t *testing.T) {
	tree := writeTree(t,
		map[string]string{"corpus.yaml": "builder: command\nbuild: {command: [sh, -c, 'date +%N >when; echo same >what; " +
			"mkdir d; mktemp d/XXXXXX']}\n"})
	request := pipeline.Request{Source: tree, Outputs: []string{filepath.Join(t.TempDir(), "a.tar.zst")}, Version: "1"}
	names, err := pipeline.Different(t.Context(), request)
	if err != nil || !slices.Contains(names, "when") || slices.Contains(names, "what") || len(names) < 4 {
		t.Errorf("the differences are %q, %v; want when, .corpus/release.json and two files in d", names, err)
	}
	if err := os.WriteFile(filepath.Join(tree, "corpus.yaml"), []byte("builder: tree\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if names, err := pipeline.Different(t.Context(), request); err != nil || len(names) != 0 {
		t.Errorf("the differences of a tree are %q, %v", names, err)
	}
}

func TestBuildOutputIsNotASource(t *testing.T) {
	tree := writeTree(t, map[string]string{"corpus.yaml": "builder: tree\n", "a": "a"})
	request := pipeline.Request{Source: tree, Outputs: []string{filepath.Join(tree, "a.tar.zst"),
		filepath.Join(tree, "a.deb")}, Version: "1"}
	var contents []string
	for range 2 {
		r, err := pipeline.Make(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		contents = append(contents, r.Content)
	}
	if contents[0] != contents[1] {
		t.Errorf("the second build contains the output of the first one")
	}
}

func TestAGoServiceIsBuilt(t *testing.T) {
	r := buildTwice(t, map[string]string{
		"corpus.yaml": "builder: go\nprefix: /srv/myapp\n", "go.mod": "module example.org/myapp\n\ngo 1.21\n",
		"cmd/myapp/main.go": "package main\n\nfunc main() { println(\"hello\") }\n",
		"salt/x.sls":        "{}\n",
	})
	if r.Needs.Arch != runtime.GOARCH || r.Needs.Glibc != "" {
		t.Errorf("the service needs %+v, want only the architecture", r.Needs)
	}
	if list := read(t, r.Statements[0]); !bytes.Contains(list, []byte("pkg:golang/stdlib@1.")) {
		t.Errorf("the list of contents does not name the standard library: %s", list)
	}
	files := unpacked(t, r.Outputs[0])
	if files["bin/myapp"] == "" || files["salt/x.sls"] == "" || files["go.mod"] != "" {
		t.Errorf("the release has %q", slices.Sorted(maps.Keys(files)))
	}
}

func TestANodeServiceIsBuilt(t *testing.T) {
	if out, err := exec.Command("npm", "--version").CombinedOutput(); err != nil {
		t.Skipf("npm does not work here: %v %s", err, out)
	}
	r := buildTwice(t, map[string]string{
		"corpus.yaml": "builder: node\nbuild: {script: build}\n",
		"package.json": `{"name":"myapp","version":"1.0.0","dependencies":{"dep":"file:dep"},"scripts":{"build":"node ` +
			`server.js >built"}}`,
		"package-lock.json": `{"name":"myapp","version":"1.0.0","lockfileVersion":3,"requires":true,` +
			`"packages":{"":{"name":"myapp","version":"1.0.0","dependencies":{"dep":"file:dep"}},"dep":{"version":"2.0.0"},` +
			`"node_modules/dep":{"resolved":"dep","link":true}}}`,
		"dep/package.json": `{"name":"dep","version":"2.0.0","main":"index.js"}`,
		"dep/index.js":     "module.exports = 'hello'\n",
		"server.js":        "console.log(require('dep'))\n",
	})
	files := unpacked(t, r.Outputs[0])
	if files["server.js"] == "" || files["built"] != "hello\n" {
		t.Errorf("the release has %q, and the script made %q", slices.Sorted(maps.Keys(files)), files["built"])
	}
	if _, there := files["node_modules/dep"]; !there {
		t.Error("the release has no dep")
	}
}

// wheel makes a package for pip.
func wheel(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range [][2]string{
		{"greet/__init__.py", "def main():\n    print('hello from', __name__)\n"},
		{"greet-2.1.dist-info/METADATA", "Metadata-Version: 2.1\nName: greet\nVersion: 2.1\n"},
		{"greet-2.1.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{"greet-2.1.dist-info/entry_points.txt", "[console_scripts]\ngreet = greet:main\n"},
		{"greet-2.1.dist-info/RECORD",
			"greet/__init__.py,,\ngreet-2.1.dist-info/METADATA,,\ngreet-2.1.dist-info/WHEEL,,\n" +
				"greet-2.1.dist-info/entry_points.txt,,\ngreet-2.1.dist-info/RECORD,,\n"},
	} {
		part, err := w.Create(f[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(part, f[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestAPythonServiceIsBuiltAndRunsElsewhere(t *testing.T) {
	needVenv(t)
	r := buildTwice(t, map[string]string{
		"corpus.yaml":      "builder: python\nbuild: {requirements: requirements.txt, wheels: wheels}\nfiles: [conf]\n",
		"requirements.txt": "greet==2.1\n", "wheels/greet-2.1-py3-none-any.whl": wheel(t), "conf/app.ini": "[app]\n",
	})
	if r.Needs.Arch != runtime.GOARCH || len(r.Needs.Programs) == 0 {
		t.Errorf("the service needs %+v, want the architecture and an interpreter", r.Needs)
	}
	if !bytes.Contains(read(t, r.Statements[0]), []byte("pkg:pypi/greet@2.1")) {
		t.Error("the list of contents does not name greet")
	}
	dir := filepath.Join(t.TempDir(), "a place with spaces")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("tar", "-C", dir, "-x", "--zstd", "-f", r.Outputs[0]).CombinedOutput(); err != nil {
		t.Skipf("tar does not unpack zstd here: %v %s", err, out)
	}
	if out, err := exec.Command(filepath.Join(dir, "venv/bin/greet")).CombinedOutput(); err != nil ||
		string(out) != "hello from greet\n" {
		t.Errorf("unpacked elsewhere, the service prints %q, %v", out, err)
	}
	read(t, filepath.Join(dir, "conf/app.ini"))
}
