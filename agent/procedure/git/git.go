// Package git implements what push to deploy needs of git: bare repositories with a hook, a commit's tree as a
// directory, and a push.
//
// Git runs programs that a repository names: hooks, filters, a file system monitor. Init, Find and Export run as root
// in a repository of the host, and the caller must have made sure that all of it is root's alone
// (walk.Root.CheckRootOnly).
package git

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/clone"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Hook is the name of the hook with which a repository deploys. It runs before any ref moves, so a failed deploy leaves
// the refs unchanged, even if the machine crashes meanwhile.
const Hook = "pre-receive"

// Init creates a bare repository whose pushes run a hook. In an existing repository it replaces the hook.
func Init(ctx context.Context, dir, branch, hook string) error {
	made, err := walk.Exists(filepath.Join(dir, "HEAD"))
	if err != nil {
		return fmt.Errorf("making %s: %w", dir, err)
	}
	if !made {
		if err := durable.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
			return fmt.Errorf("making %s: %w", dir, err)
		}
		if _, err := run(ctx, nil, "init", "--quiet", "--bare", "--initial-branch="+branch, dir); err != nil {
			return err
		}
	}
	for key, v := range map[string]string{"receive.denyNonFastForwards": "false", "receive.denyDeletes": "true",
		"receive.denyDeleteCurrent": "refuse"} {
		if _, err := run(ctx, nil, "--git-dir="+dir, "config", key, v); err != nil {
			return err
		}
	}
	if err := durable.WriteFile(filepath.Join(dir, "hooks", Hook), []byte(hook), 0o755); err != nil {
		return fmt.Errorf("making %s: %w", dir, err)
	}
	return nil
}

// Tree is the content of a commit.
type Tree struct {
	Commit string
	ID     string // of the tree
}

// Version returns the version of the commit as a release.
func (t Tree) Version() string { return t.Commit[:min(len(t.Commit), 12)] }

// Digest returns a digest of the content: two commits of the same tree have the same digest.
func (t Tree) Digest() artifact.Digest {
	return artifact.NewDigest(sha256.Sum256([]byte("git tree " + t.ID)))
}

// Find returns the tree of a commit; ref may be a branch or an ID.
func Find(ctx context.Context, dir, ref string) (Tree, error) {
	var ids []string
	for _, kind := range []string{"commit", "tree"} {
		id, err := run(ctx, nil, "--git-dir="+dir, "rev-parse", "--verify", "--quiet", ref+"^{"+kind+"}")
		if err != nil || strings.HasPrefix(ref, "-") {
			return Tree{}, diag.Git.Hint(fmt.Errorf("%s has no %s", dir, ref), "push to it first")
		}
		ids = append(ids, strings.TrimSpace(id))
	}
	return Tree{Commit: ids[0], ID: ids[1]}, nil
}

// Export writes a commit's tree into an empty directory.
func Export(ctx context.Context, dir string, t Tree, to string) error {
	index := to + ".index"
	defer os.Remove(index)
	env := []string{"GIT_INDEX_FILE=" + index}
	if _, err := run(ctx, env, "--git-dir="+dir, "read-tree", t.Commit); err != nil {
		return err
	}
	_, err := run(ctx, env, "--git-dir="+dir, "--work-tree="+to, "checkout-index", "--all", "--force")
	return err
}

// Push pushes the commit that a working tree has checked out to a branch of another repository, and shows the output of
// both sides.
func Push(ctx context.Context, tree, remote, branch string, force bool, out io.Writer) error {
	if err := clone.CheckHere(tree); err != nil {
		return err
	}
	args := []string{"-C", tree, "push"}
	if force {
		args = append(args, "--force")
	}
	cmd := exec.CommandContext(ctx, "git", append(args, "--", remote, "HEAD:refs/heads/"+branch)...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return diag.Git.Hint(fmt.Errorf("git push to %s: %w", remote, err), "git and the host printed the reason above; "+
			"the first push of a project to a host takes --init")
	}
	return nil
}

// run runs git and returns its output.
func run(ctx context.Context, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Env = append(append(process.Environ(), "SUDO_UID="), env...) // with SUDO_UID git trusts what that user owns
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return "", diag.Program.Hint(errors.New("there is no git on this host"), "install git; only push to deploy needs it")
	}
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[len(args)-1], err, strings.TrimSpace(problem.String()))
	}
	return out.String(), nil
}

// Host is a host that ssh reaches.
type Host struct {
	Name string // destination of ssh, such as root@dev1; after an @ it may be an IPv6 address
	Port int    // 0 for that of the configuration of ssh
}

// URL returns the URL of a repository of the host.
func (h Host) URL(path string) string {
	if h.Port == 0 {
		return h.Name + ":" + path
	}
	account, address, _ := strings.Cut(h.Name, "@")
	return "ssh://" + account + "@" + net.JoinHostPort(address, strconv.Itoa(h.Port)) + path
}

// Remote runs a command on the host, by the ssh that git uses. The words of the command must not contain characters
// that a shell interprets.
func (h Host) Remote(ctx context.Context, command []string, out io.Writer) error {
	ssh := os.Getenv("GIT_SSH")
	if ssh == "" {
		ssh = "ssh"
	}
	to := []string{h.Name}
	if h.Port != 0 {
		to = []string{"-p", strconv.Itoa(h.Port), h.Name}
	}
	cmd := exec.CommandContext(ctx, ssh, append(to, strings.Join(command, " "))...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return diag.Git.Hint(fmt.Errorf("%s on %s: %w", strings.Join(command[:min(3, len(command))], " "), h.Name, err),
			"the host printed the reason above; otherwise see that `ssh %s corpus-agent version` works", strings.Join(to, " "))
	}
	return nil
}
