package pipeline_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/packaging/pipeline"
)

// greetSource returns the source tree of a Python package with its own build backend, so that no package index is
// needed.
func greetSource(below string) map[string]string {
	return map[string]string{
		below + "pyproject.toml": "[build-system]\nrequires = []\nbuild-backend = \"backend\"\nbackend-path = [\".\"]\n",
		below + "greet.py":       "def main():\n    print('hello from source')\n",
		below + "backend.py": `import os, zipfile

def build_wheel(directory, config_settings=None, metadata_directory=None):
    info, name = "greet-3.0.dist-info/", "greet-3.0-py3-none-any.whl"
    files = {
        "greet.py": open("greet.py").read(),
        info + "METADATA": "Metadata-Version: 2.1\nName: greet\nVersion: 3.0\n",
        info + "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        info + "entry_points.txt": "[console_scripts]\ngreet = greet:main\n",
    }
    files[info + "RECORD"] = "".join(f + ",,\n" for f in [*files, info + "RECORD"])
    with zipfile.ZipFile(os.path.join(directory, name), "w") as z:
        for f in files:
            z.writestr(f, files[f])
    return name
`,
	}
}

func needVenv(t *testing.T) {
	t.Helper()
	if out, err := exec.Command("python3", "-c", "import ensurepip, venv").CombinedOutput(); err != nil {
		t.Skipf("python3 -m venv does not work here: %v %s", err, out)
	}
}

// greets unpacks an artifact and runs the installed program.
func greets(t *testing.T, r pipeline.Result) {
	t.Helper()
	if !bytes.Contains(read(t, r.Statements[0]), []byte("pkg:pypi/greet@3.0")) {
		t.Error("the list of contents does not name greet")
	}
	dir := t.TempDir()
	if out, err := exec.Command("tar", "-C", dir, "-x", "--zstd", "-f", r.Outputs[0]).CombinedOutput(); err != nil {
		t.Skipf("tar does not unpack zstd here: %v %s", err, out)
	}
	if out, err := exec.Command(filepath.Join(dir, "venv/bin/greet")).CombinedOutput(); err != nil ||
		string(out) != "hello from source\n" {
		t.Errorf("the program prints %q, %v", out, err)
	}
}

func TestAPythonServiceIsInstalledFromItsSource(t *testing.T) {
	t.Parallel()
	needVenv(t)
	files := greetSource("lib/")
	files["corpus.yaml"] = "builder: python\nbuild: {install: [lib]}\n"
	greets(t, buildAll(t, writeTree(t, files)))
}

func TestAPythonServiceIsInstalledFromACommit(t *testing.T) {
	artifacttest.Long(t)
	t.Parallel()
	needVenv(t)
	repository := writeTree(t, greetSource(""))
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git",
			append([]string{"-C", repository, "-c", "user.name=t", "-c", "user.email=t@example.org", "-c",
				"commit.gpgsign=false"}, args...)...)
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "GIT_CONFIG_NOSYSTEM=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q")
	git("add", ".")
	git("commit", "-q", "-m", "one")
	commit := git("rev-parse", "HEAD")
	if err := os.WriteFile(filepath.Join(repository, "greet.py"), []byte("raise SystemExit('a later commit')\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	git("commit", "-q", "-a", "-m", "two")
	greets(t, buildAll(t, writeTree(t, map[string]string{
		"corpus.yaml": "builder: python\nbuild: {install: ['git+file://" + repository + "@" + commit + "']}\n",
	})))
}

func TestHashesOfRequirementsAreChecked(t *testing.T) {
	artifacttest.Long(t)
	t.Parallel()
	needVenv(t)
	body := wheel(t)
	sum := sha256.Sum256([]byte(body))
	build := func(hash string) (log string, err error) {
		files := outputs(t)
		_, err = pipeline.Make(t.Context(), pipeline.Request{Source: writeTree(t, map[string]string{
			"corpus.yaml":      "builder: python\nbuild: {requirements: requirements.txt, wheels: wheels}\n",
			"requirements.txt": "greet==2.1 --hash=sha256:" + hash + "\n", "wheels/greet-2.1-py3-none-any.whl": body,
		}), Outputs: files, Version: "1"})
		if err == nil {
			return "", nil
		}
		if left, _ := os.ReadDir(filepath.Dir(files[0])); len(left) != 1 {
			t.Errorf("a failed build left %v", left)
		}
		return string(read(t, files[0]+".log")), err
	}
	if _, err := build(hex.EncodeToString(sum[:])); err != nil {
		t.Error(withLog(err))
	}
	if log, err := build(strings.Repeat("0", 64)); err == nil || !strings.Contains(log, "DO NOT MATCH") {
		t.Errorf("a package with another digest is installed: %v\n%s", err, log)
	}
}
