// Package mount implements mount.mounted, mount.unmounted and mount.swap for the running system and /etc/fstab,
// and mount.fstab_present and mount.fstab_absent for the file alone.
//
// The present mounts are read from /proc/self/mountinfo. If a mount lacks declared options, it is remounted. An
// option that was removed from a declaration is not noticed, since earlier declarations are not stored.
package mount

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Functions returns the functions of mount.
func Functions() module.Table {
	return module.Table{
		"mounted":       func() module.Resource { return newMounted() },
		"unmounted":     func() module.Resource { return &unmounted{Config: "/etc/fstab"} },
		"swap":          func() module.Resource { return &swap{Config: "/etc/fstab", Persist: true} },
		"fstab_present": func() module.Resource { return newLine() },
		"fstab_absent":  func() module.Resource { return &noLine{Config: "/etc/fstab"} },
	}
}

// run runs a command that changes mounts, as a user if one is given. env is added to the environment.
func run(ctx context.Context, h *host.Host, name, user string, env []string, argv ...string) error {
	if user != "" {
		out, err := h.Shell(ctx, host.Line{Text: strings.Join(argv, " "), Argv: argv, RunAs: user, Env: env})
		if err == nil && out.Code != 0 {
			err = errors.New(strings.TrimSpace(out.Stderr))
		}
		return host.Failed(diag.Mount, err, argv[0]+" "+name, "see `dmesg` on the host")
	}
	_, err := h.Tool(ctx, host.Tool{Argv: argv, Env: env, Changes: host.Subject{Kind: host.KindMount, Name: name},
		Package: "mount, or util-linux"})
	return host.Failed(diag.Mount, err, argv[0]+" of "+name,
		"see `dmesg` and `findmnt` on the host; a file system in use is shown by `fuser -vm "+name+"`")
}

// mountWith mounts with the given options. It passes the password of an SMB share to mount.cifs in the
// environment, since every user can read the arguments of a program.
func (m *mountedState) mountWith(ctx context.Context, h *host.Host, opts []string) error {
	var env []string
	if slices.Contains([]string{"cifs", "smb3", "smbfs"}, m.FSType) {
		opts = slices.DeleteFunc(slices.Clone(opts), func(o string) bool {
			name, password, found := strings.Cut(o, "=")
			secret := found && slices.Contains([]string{"pass", "passwd", "password"}, name)
			if secret {
				env = []string{"PASSWD=" + password}
			}
			return secret
		})
	}
	return run(ctx, h, m.Name, m.User, env, "mount", "-o", strings.Join(opts, ","), "-t", m.FSType, m.Device, m.Name)
}

func unmount(ctx context.Context, h *host.Host, name, user string) error {
	return run(ctx, h, name, user, nil, "umount", name)
}

// unmounted implements mount.unmounted.
type unmounted struct {
	Name    string     `sls:"name"`
	Device  string     `sls:"device"`
	Config  string     `sls:"config"`
	Persist bool       `sls:"persist"` // also remove the entry in fstab
	User    string     `sls:"user"`
	Rest    *value.Map `sls:"*"` // arguments of mount.mounted that have no effect here
}

func (u *unmounted) plan(h *host.Host) (live bool, text string, changes *value.Map, err error) {
	changes = value.NewMap()
	skipped := h.Kernel.Allowed("unmounting " + u.Name)
	if skipped != nil && !u.Persist {
		return false, "", changes, skipped
	}
	if skipped == nil {
		all, err := active(h)
		if err != nil {
			return false, "", changes, err
		}
		if _, live = all[real(h, u.Name)]; live {
			changes.Set("umount", true)
		}
	}
	if u.Persist {
		t, err := openTable(h, u.Config)
		if err != nil {
			return false, "", changes, err
		}
		rest, found := t.without(func(e entry) bool {
			return e.name == escaped(u.Name) && (u.Device == "" || e.device == escaped(u.Device))
		})
		if found {
			changes.Set("persist", "purged")
			return live, rest, changes, nil
		}
	}
	return live, "", changes, nil
}

func (u *unmounted) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	_, _, changes, err := u.plan(h)
	if err != nil || changes.Len() == 0 {
		return module.Diff{Comment: "nothing is mounted at " + u.Name}, err
	}
	return module.Diff{Changes: changes, Planned: value.NewMap(), Comment: u.Name + " would be unmounted"}, nil
}

func (u *unmounted) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	live, _, changes, err := u.plan(h)
	if err != nil {
		return module.Report{}, err
	}
	if live {
		if err := unmount(ctx, h, u.Name, u.User); err != nil {
			return module.Report{}, err
		}
	}
	if changes.Has("persist") {
		_, text, _, err := u.plan(h)
		if err == nil {
			err = h.WriteText(u.Config, text)
		}
		if err != nil {
			return module.Report{Changes: value.NewMap("umount", live)}, err
		}
	}
	return module.Report{Changes: changes, Comment: fmt.Sprintf("nothing is mounted at %s", u.Name)}, nil
}
