// Package system gathers the states that are about the host as a whole: its kernel, clock, languages,
// name, disks and packet filter, and which of several programs is behind a name.
//
// Each state has a package of its own below this one. What they change is of two kinds: files that
// say how the host will be after the next boot, and the system that runs. Below a root only the first
// is there to change; states that are about both say in a warning that the second was left alone, and
// those that are about the second alone are skipped.
package system

import (
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/system/alternatives"
	"github.com/corpus-agent/corpus-agent/state/module/system/debconf"
	"github.com/corpus-agent/corpus-agent/state/module/system/environ"
	"github.com/corpus-agent/corpus-agent/state/module/system/firewalld"
	"github.com/corpus-agent/corpus-agent/state/module/system/iptables"
	"github.com/corpus-agent/corpus-agent/state/module/system/kmod"
	"github.com/corpus-agent/corpus-agent/state/module/system/locale"
	"github.com/corpus-agent/corpus-agent/state/module/system/lvm"
	"github.com/corpus-agent/corpus-agent/state/module/system/mount"
	"github.com/corpus-agent/corpus-agent/state/module/system/network"
	"github.com/corpus-agent/corpus-agent/state/module/system/pdbedit"
	"github.com/corpus-agent/corpus-agent/state/module/system/selinux"
	"github.com/corpus-agent/corpus-agent/state/module/system/sysctl"
	"github.com/corpus-agent/corpus-agent/state/module/system/timezone"
	"github.com/corpus-agent/corpus-agent/state/module/system/virt"
)

// Sources gives files of the state tree to the states that name some, and compares texts.
type Sources interface {
	debconf.Sources
	network.Sources
}

// Tables are the functions of all these states, by state.
func Tables(sources Sources, pillar func(path, delimiter string) (any, bool)) module.Registry {
	return module.Registry{
		"alternatives": alternatives.Functions(),
		"debconf":      debconf.Functions(sources),
		"environ":      environ.Functions(),
		"firewalld":    firewalld.Functions(),
		"iptables":     iptables.Functions(),
		"kmod":         kmod.Functions(),
		"locale":       locale.Functions(),
		"lvm":          lvm.Functions(),
		"mount":        mount.Functions(),
		"network":      network.Functions(sources),
		"pdbedit":      pdbedit.Functions(),
		"selinux":      selinux.Functions(),
		"sysctl":       sysctl.Functions(),
		"timezone":     timezone.Functions(),
		"virt":         virt.Functions(pillar),
	}
}
