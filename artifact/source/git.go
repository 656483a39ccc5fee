package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	getter "github.com/hashicorp/go-getter/v2"

	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// gitGetter fetches one commit of a repository. Go-getter's own getter clones the default branch first, which needs all
// of the history.
type gitGetter struct {
	only
	ref string  // branch, tag or commit; empty means the default branch
	got *Commit // gets the commit that was fetched; nil if it is not needed
}

// Get fetches the tree of the commit, without the repository around it.
func (g gitGetter) Get(ctx context.Context, req *getter.Request) error {
	ref := g.ref
	if ref == "" {
		ref = "HEAD"
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--template=", req.Dst},
		{"-C", req.Dst, "fetch", "--quiet", "--depth=1", "--no-tags", "--", req.URL().String(), ref},
		{"-C", req.Dst, "-c", "advice.detachedHead=false", "checkout", "--quiet", "--detach", "FETCH_HEAD"},
	} {
		if err := git(ctx, args...); err != nil {
			return err
		}
	}
	if err := g.note(filepath.Join(req.Dst, ".git")); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(req.Dst, ".git"))
}

// note reads the fetched commit from git's own files: HEAD has the commit, and FETCH_HEAD the kind of name by which it
// was found.
func (g gitGetter) note(repository string) error {
	if g.got == nil {
		return nil
	}
	head, err := os.ReadFile(filepath.Join(repository, "HEAD"))
	fetched, fetchedErr := os.ReadFile(filepath.Join(repository, "FETCH_HEAD"))
	if err := errors.Join(err, fetchedErr); err != nil {
		return fmt.Errorf("git: %w", err)
	}
	g.got.ID = strings.TrimSpace(string(head))
	_, rest, _ := strings.Cut(string(fetched), "\t")
	if strings.HasPrefix(strings.TrimLeft(rest, "\t"), "tag '") {
		g.got.Tag = strings.TrimPrefix(g.ref, "refs/tags/")
	}
	return nil
}

func git(ctx context.Context, args ...string) error {
	program, err := process.Look("git")
	if err != nil && !errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("git: %w", err)
	}
	if err != nil {
		return diag.Program.Hint(errors.New("git is not installed"), "apt install git")
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = gitEnv(process.Environ())
	// Git's child processes, which use the network, must not outlive it.
	process.Detach(cmd)
	cmd.Cancel = func() error { return process.Signal(cmd, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) { // a shared ssh connection may stay and keep the output open
		return diag.Source.Hint(fmt.Errorf("git: %s", complaint(string(out), err)),
			"check that the repository and the ref exist and that `git ls-remote` works; a commit is named by all of its 40 "+
				"digits")
	}
	return nil
}

// gitEnv returns the environment for git, without variables that lead to another repository, and with some that prevent
// prompts.
func gitEnv(environ []string) []string {
	keep := []string{
		"PATH", "HOME", "USER", "TMPDIR", "XDG_CONFIG_HOME", "SSH_AUTH_SOCK", "GIT_SSH_COMMAND",
		"GIT_SSL_CAINFO", "SSL_CERT_FILE",
		"HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy",
	}
	env := []string{"LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=https:http:ssh:file"}
	ssh := false
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if slices.Contains(keep, name) {
			env = append(env, entry)
			ssh = ssh || name == "GIT_SSH_COMMAND"
		}
	}
	if !ssh {
		env = append(env, "GIT_SSH_COMMAND=ssh -o BatchMode=yes")
	}
	return env
}

// complaint returns git's error message, on one line and without control characters.
func complaint(out string, err error) string {
	lines := strings.FieldsFunc(out, func(r rune) bool { return r == '\n' || r == '\r' })
	if len(lines) == 0 {
		return err.Error()
	}
	i := slices.IndexFunc(lines, func(l string) bool {
		return strings.HasPrefix(l, "fatal: ") ||
			strings.HasPrefix(l, "error: ")
	})
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, lines[max(i, 0)])
}
