package host

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// jailScript runs a command inside of a tree ($1) that has its own system: a user ($2, "" for the agent's), a directory
// ($3), a shell ($4) and its line ($5). Programs in the tree see the machine's devices and processes where the tree has
// the directories for them. These mounts are in a separate namespace, so that they end with the command. Without the
// permission to create a namespace, the command runs without the mounts.
const jailScript = `root=$1 user=$2
set -- "$3" "$4" "$5"
enter() {
	if [ -n "$user" ]; then
		exec chroot --userspec="$user" "$root" /bin/sh -c 'cd -- "$1" || exit 126; exec "$2" -c "$3"' sh "$@"
	fi
	exec chroot "$root" /bin/sh -c 'cd -- "$1" || exit 126; exec "$2" -c "$3"' sh "$@"
}
if [ -z "$CORPUS_JAIL" ] && unshare --mount true 2>/dev/null; then
	export CORPUS_JAIL=1
	exec unshare --mount --propagation private -- /bin/sh -c "$0" "$0" "$root" "$user" "$@"
fi
if [ -n "$CORPUS_JAIL" ]; then
	for d in dev proc sys; do
		[ ! -d "$root/$d" ] || mount --rbind "/$d" "$root/$d" 2>/dev/null || :
	done
fi
unset CORPUS_JAIL
enter "$@"`

// jailed runs a line inside of its root.
func (h *Host) jailed(ctx context.Context, l Line, c Command) (Output, error) {
	if err := h.jail(l.Root); err != nil {
		return Output{}, err
	}
	dir, shell := l.Dir, l.Shell
	if dir == "" {
		dir = "/"
	}
	if shell == "" {
		shell = DefaultShell
	}
	c.Argv = []string{"/bin/sh", "-c", jailScript, jailScript, l.Root, l.RunAs, dir, shell, l.Text}
	c.Dir, c.Paths, c.Env = "/", []string{l.Root}, environment(h.jailEnvironment(l), l, nil)
	return h.Commands.Run(ctx, c)
}

// jailEnvironment returns the environment of a command line that runs inside of its root. The home of a user of that
// tree is not known here.
func (h *Host) jailEnvironment(l Line) []string {
	name, _, _ := strings.Cut(l.RunAs, ":")
	if name == "" || name == "root" {
		return h.Env.All()
	}
	return append(h.Env.Foreign(), "HOME=/", "USER="+name, "LOGNAME="+name)
}

// jail returns an error if commands cannot run inside of a directory.
func (h *Host) jail(root string) error {
	if !path.IsAbs(root) {
		return diag.Argument.Hint(fmt.Errorf("the root %s is not an absolute path", root), "start it with a slash")
	}
	found, err := walk.Found(h.statDir(root))
	switch {
	case errors.Is(err, ErrNotDir):
		return diag.Argument.Hint(fmt.Errorf("the root %s is not a directory", root), "correct root")
	case err != nil:
		return fmt.Errorf("the root %s: %w", root, err)
	case !found:
		return diag.Prerequisite.Hint(fmt.Errorf("the root %s does not exist", root),
			"make it in a state that this one requires")
	}
	return nil
}
