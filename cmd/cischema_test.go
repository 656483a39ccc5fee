//go:build integration

package cmd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestWorkflowFilesFollowTheirSchemas compares the workflow files with the schemas of SchemaStore and GitLab, which
// check-jsonschema has with it.
func TestWorkflowFilesFollowTheirSchemas(t *testing.T) {
	venv := t.TempDir()
	for _, args := range [][]string{
		{"python3", "-m", "venv", venv},
		{filepath.Join(venv, "bin", "pip"), "install", "--quiet", "check-jsonschema==0.39.0"},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%s: %v: %s", args, err, out)
		}
	}
	lint := func(schema, file string) (string, error) {
		out, err := exec.Command(filepath.Join(venv, "bin", "check-jsonschema"), "--builtin-schema", "vendor."+schema,
			file).CombinedOutput()
		return string(out), err
	}
	for file, schema := range map[string]string{"packaging/ci/github.yml": "github-workflows",
		".github/workflows/ci.yml": "github-workflows", "packaging/ci/gitlab.yml": "gitlab-ci"} {
		if out, err := lint(schema, filepath.Join("..", file)); err != nil {
			t.Errorf("%s: %v\n%s", file, err, out)
		}
		wrong := filepath.Join(t.TempDir(), "wrong.yml")
		text := strings.NewReplacer("runs-on:", "run-on:", "script:", "scripts:").Replace(page(t, file))
		if err := os.WriteFile(wrong, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := lint(schema, wrong); err == nil {
			t.Errorf("%s with mistakes is accepted: %s", file, out)
		}
	}
}
