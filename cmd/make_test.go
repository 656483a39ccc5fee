package cmd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMakeInACloneOfAnotherUser builds two small programs with the Makefile where git refuses the clone: make declares
// the clone safe, and where git refuses it nevertheless, programs contain no commit.
func TestMakeInACloneOfAnotherUser(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"make", "git"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	const name = "example.com/corpus"
	files := map[string]string{
		"Makefile": strings.ReplaceAll(string(makefile), "github.com/corpus-agent/corpus-agent", name),
		"go.mod":   "module " + name + "\n\ngo 1.21\n", "cmd/corpus/main.go": "package main\n\nfunc main() {}\n",
		"cmd/corpus-agent/main.go": "package main\n\nfunc main() {}\n",
	}
	for shape, broken := range map[string]bool{"git refuses the owner": false, "git refuses everything": true} {
		t.Run(shape, func(t *testing.T) {
			t.Parallel()
			dir, bin := t.TempDir(), t.TempDir()
			for file, content := range files {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for _, args := range [][]string{{"init", "-q"}, {"add", "."},
				{"-c", "user.name=x", "-c", "user.email=x@localhost", "commit", "-q", "-m", "x"}} {
				git := exec.Command("git", args...)
				git.Dir = dir
				if out, err := git.CombinedOutput(); err != nil {
					t.Fatalf("git %v: %v\n%s", args, err, out)
				}
			}
			if broken {
				if err := os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\nexit 128\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			build := exec.Command("make", "build")
			build.Dir = dir
			build.Env = append(os.Environ(), "GOENV=off", "GOFLAGS=", "GIT_TEST_ASSUME_DIFFERENT_OWNER=1",
				"PATH="+bin+":"+os.Getenv("PATH"))
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("make build: %v\n%s", err, out)
			}
			info, err := exec.Command("go", "version", "-m", filepath.Join(dir, "bin", "corpus")).Output()
			if stamped := strings.Contains(string(info), "vcs.revision"); err != nil || stamped == broken {
				t.Errorf("the program prints (%v):\n%s", err, info)
			}
		})
	}
}
