package process_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func TestCredentialsAreNotInherited(t *testing.T) {
	env := []string{
		"PATH=/bin", "HOME=/root", "LANG=C", "http_proxy=http://proxy", "AWS_REGION=eu-west-1", "CORPUS_ROOT=/x",
		"AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=s", "AWS_SESSION_TOKEN=t", "AWS_WEB_IDENTITY_TOKEN_FILE=/f",
		"AWS_CONTAINER_AUTHORIZATION_TOKEN=t", "MINIO_ROOT_PASSWORD=p", "MINIO_SECRET_KEY=k", "MC_HOST_a=https://u:p@h",
		"CORPUS_KEY_ROOT=k", "CORPUS_PASSPHRASE=p", "CORPUS_STORE=https://u:p@h", "NOTIFY_SOCKET=/run/n", "LISTEN_FDS=1",
	}
	got := process.Inherited(env)
	if want := env[:6]; !slices.Equal(got, want) {
		t.Errorf("the environment of a child process is %q, want %q", got, want)
	}
	if env[6] != "AWS_ACCESS_KEY_ID=a" {
		t.Error("the caller's slice was changed")
	}
}

// TestScriptsThatCannotBeStartedHaveAHint starts scripts with first lines that the kernel cannot follow.
func TestScriptsThatCannotBeStartedHaveAHint(t *testing.T) {
	for text, want := range map[string]string{
		"#!/bin/sh\r\ntrue\r\n":         "CRLF",
		"#!/no/such/python\ntrue\n":     "/no/such/python, which this host does not have",
		"#!python3\ntrue\n":             "write the absolute path",
		"#! /no/such/perl -w\ntrue\n":   "/no/such/perl, which",
		"echo there is no first line\n": "such as #!/bin/sh",
	} {
		file := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		_, err := process.Enclose(exec.Command(file)).Run(t.Context())
		if hint := diag.HintOf(err); err == nil || !strings.Contains(hint, want) {
			t.Errorf("%q: %v, hint %q, want %q in it", text, err, hint, want)
		}
	}
	if _, err := process.Enclose(exec.Command("/no/such/script")).Run(t.Context()); err == nil || diag.HintOf(err) != "" {
		t.Errorf("a script that does not exist: %v, hint %q", err, diag.HintOf(err))
	}
}

func TestDetachedCommandHasNoTerminalAndEndsAsAGroup(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", `cut -d" " -f1,6 /proc/$$/stat; sleep 60 & wait`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	process.Detach(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 32)
	n, _ := out.Read(line)
	if pid, session, _ := strings.Cut(strings.TrimSpace(string(line[:n])), " "); pid == "" || session != pid {
		t.Errorf("process %q belongs to session %q, want its own", pid, session)
	}
	if err := process.Signal(cmd, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // the pipe stays open until the background sleep has ended as well
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Error("a process of the group outlived the signal")
	}
}

// TestOnlyThisPackagePassesTheEnvironmentOn reads the source: a child process that is started with os.Environ, or with
// a process group but no session, would bypass this package.
func TestOnlyThisPackagePassesTheEnvironmentOn(t *testing.T) {
	// The builder starts programs of its user and selects their environment by name. An agent that another agent tests
	// must read the settings of the next run. Test hosts and fault injection are not part of the agent.
	exempt := []string{"artifact/process/", "cmd/corpus-agent/self.go", "packaging/hosttest/", "artifact/store/storetest/",
		"state/function/environ/environ.go"}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		name, _ := filepath.Rel(root, path)
		if slices.ContainsFunc(exempt, func(p string) bool { return strings.HasPrefix(name, p) }) {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Environ" {
				if x, ok := s.X.(*ast.Ident); ok && (x.Name == "os" || x.Name == "syscall") {
					t.Errorf("%s uses %s.Environ: use process.Environ", name, x.Name)
				}
			}
			if kv, ok := n.(*ast.KeyValueExpr); ok {
				if k, ok := kv.Key.(*ast.Ident); ok && k.Name == "Setpgid" {
					t.Errorf("%s sets Setpgid: use process.Detach", name)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
