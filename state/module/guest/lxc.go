package guest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// lxc runs guests with the package lxc, each in a unit of its own with user IDs of its own.
type lxc struct{}

// Paths of LXC. A guest sees its root file system at a path that its root may search, in the mount namespace of its
// unit: only root of the node reaches cloud.Disks.
const (
	lxcDir   = "/var/lib/lxc"
	lxcRoots = "/run/corpus-lxc"
	lxcUnit  = "/etc/systemd/system/corpus-lxc@.service"
)

func (lxc) Unit(guest string) string { return "corpus-lxc@" + guest + ".service" }

func (lxc) Own(guest string) string { return path.Join(lxcDir, guest) }

// lxcService is the unit of all guests of LXC. LXC puts a guest into a control group outside of that of the unit.
const lxcService = `# Written by guest.present.
[Unit]
Description=Guest %i
Documentation=man:lxc-start(1)
After=network.target systemd-networkd.service

[Service]
RuntimeDirectory=corpus-lxc/%i
BindPaths=` + cloud.Disks + `/%i:` + lxcRoots + `/%i
ExecStart=/usr/bin/lxc-start --foreground --name=%i
ExecStop=/usr/bin/lxc-stop --name=%i --timeout=80
KillMode=mixed
TimeoutStopSec=100
Delegate=yes

[Install]
WantedBy=multi-user.target
`

// Settings returns the configuration of a guest and the unit of all guests. With a writable /sys, networkd of a guest
// without udev waits for udev.
func (l lxc) Settings(h *host.Host, p *present) ([]setting, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by guest.present.\nlxc.include = /usr/share/lxc/config/common.conf\n"+
		"lxc.include = /usr/share/lxc/config/userns.conf\nlxc.mount.auto =\n"+
		"lxc.mount.auto = proc:mixed sys:ro cgroup:mixed\nlxc.apparmor.profile = generated\n"+
		"lxc.apparmor.allow_nesting = 1\nlxc.signal.halt = SIGRTMIN+3\nlxc.uts.name = %s\nlxc.rootfs.path = dir:%s\n",
		p.Hostname, path.Join(lxcRoots, p.Name))
	for _, kind := range []string{"u", "g"} {
		fmt.Fprintf(&b, "lxc.idmap = %s 0 %d %d\n", kind, p.UIDs, usersOfGuest)
	}
	if p.Bridge == "" {
		b.WriteString("lxc.net.0.type = empty\n")
	} else {
		fmt.Fprintf(&b, "lxc.net.0.type = veth\nlxc.net.0.link = %s\nlxc.net.0.flags = up\nlxc.net.0.name = host0\n"+
			"lxc.net.0.veth.pair = %s\n", p.Bridge, p.port())
	}
	for _, source := range slices.Sorted(p.binds.Keys()) {
		kind, err := mountPoint(h, source)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "lxc.mount.entry = %s %s none bind,ro,nosuid,nodev,%s 0 0\n", source,
			strings.TrimPrefix(p.binds[source], "/"), kind)
	}
	for _, m := range p.mounts {
		mode := "ro"
		if m.Write {
			mode = "rw"
		}
		fmt.Fprintf(&b, "lxc.mount.entry = %s %s none bind,%s,nosuid,nodev,create=dir 0 0\n", m.At,
			strings.TrimPrefix(m.target, "/"), mode)
	}
	return []setting{{path.Join(l.Own(p.Name), "config"), b.String()}, {lxcUnit, lxcService}}, nil
}

// mountPoint returns the option with which LXC makes the place of a mount.
func mountPoint(h *host.Host, source string) (string, error) {
	info, err := h.Files.Stat(source)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() {
		return "create=dir", nil
	}
	return "create=file", err
}

// Give adds the first of the guest's user IDs to the owner and group of each file that has those of an image. Files of
// a disk that a guest has used are unchanged. The program chown removes setuid and setgid bits, which are set again.
// Only root of the node reaches the tree, and the guest does not run.
func (lxc) Give(ctx context.Context, h *host.Host, p *present, dir string) error {
	changes := host.Subject{Kind: host.KindCommand, Name: "owners of the files of guest " + p.Name}
	run := func(writes bool, argv ...string) (string, error) {
		t := host.Tool{Argv: argv, Limit: hour, Plain: argv}
		if writes {
			t.Changes = changes
		}
		out, err := h.Tool(ctx, t)
		return out, host.Failed(diag.Container, err, "giving the files of guest "+p.Name+" to it",
			"see whether find and chown are those of GNU")
	}
	out, err := run(false, "find", dir, "-xdev", "-printf", `%U:%G\n`)
	if err != nil {
		return err
	}
	raised, err := run(false, "find", dir, "-xdev", "-type", "f", "(", "-perm", "-4000", "-o", "-perm", "-2000", ")",
		"-printf", `%m %p\0`)
	if err != nil {
		return err
	}
	owners := slices.Compact(slices.Sorted(strings.FieldsSeq(out)))
	for _, owner := range owners {
		if to := p.shifted(owner); to != owner {
			if _, err := run(true, "chown", "--recursive", "--no-dereference", "--from="+owner, to, dir); err != nil {
				return err
			}
		}
	}
	for one := range strings.SplitSeq(raised, "\x00") {
		if mode, file, is := strings.Cut(one, " "); is {
			if _, err := run(true, "chmod", mode, file); err != nil {
				return err
			}
		}
	}
	return nil
}

// shifted returns an owner and group, as UID:GID, that an image has as those of the guest on the node.
func (p *present) shifted(owner string) string {
	uid, gid, _ := strings.Cut(owner, ":")
	shift := func(text string) string {
		if id, err := strconv.Atoi(text); err == nil && id < usersOfGuest {
			return strconv.Itoa(p.UIDs + id)
		}
		return text
	}
	return shift(uid) + ":" + shift(gid)
}
