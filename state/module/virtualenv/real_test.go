//go:build integration

package virtualenv_test

import (
	"archive/zip"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/module/client/clienttest"
	"github.com/corpus-agent/corpus-agent/state/module/pip"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// wheel writes a minimal distribution.
func wheel(t *testing.T, dir, name, version string) {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	info := name + "-" + version + ".dist-info/"
	for file, text := range map[string]string{
		name + ".py":      "",
		info + "METADATA": "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n",
		info + "WHEEL":    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		info + "RECORD":   name + ".py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n",
	} {
		f, err := w.Create(file)
		must(t, err)
		_, err = io.WriteString(f, text)
		must(t, err)
	}
	must(t, w.Close())
	must(t, os.WriteFile(filepath.Join(dir, name+"-"+version+"-py3-none-any.whl"), out.Bytes(), 0o644))
}

// TestRealPip creates a virtual environment and installs into it with the host's Python.
func TestRealPip(t *testing.T) {
	if err := exec.Command("python3", "-c", "import venv, ensurepip").Run(); err != nil {
		t.Skip("this machine has no python3 with venv to test with")
	}
	dir := t.TempDir()
	wheel(t, dir, "corpusdemo", "1.0")
	h, err := machine.New(host.Options{})
	must(t, err)
	env := filepath.Join(dir, "env")
	report := hosttest.Converge(t, h, functions(), "managed", value.NewMap("name", env, "venv_bin", "python3"))
	if !strings.HasPrefix(value.Str(report.Changes.Value("new")), "Python 3") {
		t.Errorf("a new environment reports %s", value.Repr(report.Changes))
	}
	with := func(text string) *value.Map {
		return value.NewMap("name", text, "bin_env", env, "no_index", true, "find_links", dir)
	}
	for _, c := range []struct {
		function, text string
		want           *value.Map
	}{
		{"installed", "corpusdemo==1.0", value.NewMap("corpusdemo==1.0", "Installed")},
		{"installed", "Corpusdemo>0.9", value.NewMap()},
	} {
		if report := hosttest.Converge(t, h, pip.Functions(clienttest.Files{}), c.function,
			with(c.text)); !value.Equal(report.Changes, c.want) {
			t.Errorf("%s reports %s, want %s", c.text, value.Repr(report.Changes), value.Repr(c.want))
		}
	}
	report = hosttest.Converge(t, h, pip.Functions(clienttest.Files{}),
		"removed", value.NewMap("name", "corpusdemo", "bin_env", env))
	if want := value.NewMap("corpusdemo", "Removed"); !value.Equal(report.Changes, want) {
		t.Errorf("removing reports %s", value.Repr(report.Changes))
	}
	resource, d := hosttest.Look(t, h, pip.Functions(clienttest.Files{}), "installed", with("no-such-thing==1"))
	if _, err := resource.Apply(context.Background(), h, d); err == nil || !strings.Contains(diag.HintOf(err), "index") {
		t.Errorf("a package that no index has gives %v (hint: %s)", err, diag.HintOf(err))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
