// Package table provides the table of all execution functions. It is the only package that imports those of all Salt
// modules.
package table

import (
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/function/alternatives"
	"github.com/corpus-agent/corpus-agent/state/function/archive"
	"github.com/corpus-agent/corpus-agent/state/function/cmd"
	"github.com/corpus-agent/corpus-agent/state/function/config"
	"github.com/corpus-agent/corpus-agent/state/function/cp"
	"github.com/corpus-agent/corpus-agent/state/function/cron"
	"github.com/corpus-agent/corpus-agent/state/function/data"
	"github.com/corpus-agent/corpus-agent/state/function/defaults"
	"github.com/corpus-agent/corpus-agent/state/function/dig"
	"github.com/corpus-agent/corpus-agent/state/function/disk"
	"github.com/corpus-agent/corpus-agent/state/function/dnsutil"
	"github.com/corpus-agent/corpus-agent/state/function/docker"
	"github.com/corpus-agent/corpus-agent/state/function/environ"
	"github.com/corpus-agent/corpus-agent/state/function/event"
	"github.com/corpus-agent/corpus-agent/state/function/file"
	"github.com/corpus-agent/corpus-agent/state/function/git"
	"github.com/corpus-agent/corpus-agent/state/function/grains"
	"github.com/corpus-agent/corpus-agent/state/function/group"
	"github.com/corpus-agent/corpus-agent/state/function/hashutil"
	"github.com/corpus-agent/corpus-agent/state/function/hosts"
	"github.com/corpus-agent/corpus-agent/state/function/http"
	"github.com/corpus-agent/corpus-agent/state/function/kmod"
	"github.com/corpus-agent/corpus-agent/state/function/ldap"
	"github.com/corpus-agent/corpus-agent/state/function/locale"
	"github.com/corpus-agent/corpus-agent/state/function/log"
	"github.com/corpus-agent/corpus-agent/state/function/match"
	"github.com/corpus-agent/corpus-agent/state/function/mine"
	"github.com/corpus-agent/corpus-agent/state/function/mount"
	"github.com/corpus-agent/corpus-agent/state/function/mysql"
	"github.com/corpus-agent/corpus-agent/state/function/network"
	"github.com/corpus-agent/corpus-agent/state/function/pillar"
	"github.com/corpus-agent/corpus-agent/state/function/pip"
	"github.com/corpus-agent/corpus-agent/state/function/pkg"
	"github.com/corpus-agent/corpus-agent/state/function/postgres"
	"github.com/corpus-agent/corpus-agent/state/function/ps"
	"github.com/corpus-agent/corpus-agent/state/function/random"
	"github.com/corpus-agent/corpus-agent/state/function/saltutil"
	"github.com/corpus-agent/corpus-agent/state/function/service"
	"github.com/corpus-agent/corpus-agent/state/function/shadow"
	"github.com/corpus-agent/corpus-agent/state/function/slsutil"
	"github.com/corpus-agent/corpus-agent/state/function/status"
	"github.com/corpus-agent/corpus-agent/state/function/sys"
	"github.com/corpus-agent/corpus-agent/state/function/sysctl"
	"github.com/corpus-agent/corpus-agent/state/function/system"
	"github.com/corpus-agent/corpus-agent/state/function/test"
	"github.com/corpus-agent/corpus-agent/state/function/timezone"
	"github.com/corpus-agent/corpus-agent/state/function/user"
	"github.com/corpus-agent/corpus-agent/state/jinja"
	files "github.com/corpus-agent/corpus-agent/state/module/file"
)

// Acting returns the table of functions that module.run may call: those of templates, and those that change the
// host. Templates must not get this table.
func Acting(facts function.Facts) function.Table {
	t := New(facts)
	return t.Add(
		alternatives.Acting(&facts), archive.Acting(&facts), cmd.Acting(&facts), cp.Acting(&facts), cron.Acting(&facts),
		data.Acting(&facts), event.Acting(&facts), file.Acting(&facts), git.Acting(&facts),
		grains.Acting(&facts), group.Acting(&facts), hosts.Acting(&facts), locale.Acting(&facts), network.Acting(&facts),
		pip.Acting(&facts), pkg.Acting(&facts), service.Acting(&facts),
		shadow.Acting(&facts), sysctl.Acting(&facts), system.Acting(&facts), timezone.Acting(&facts), user.Acting(&facts))
}

// Filters returns Salt's filters that read programs and files of the host.
func Filters(f *function.Facts) map[string]jinja.Filter {
	filters := file.Filters(f)
	filters["which"] = cmd.WhichFilter(f)
	return filters
}

// serializer returns a format of file.serialize.
func serializer(format string) (function.Serializer, bool) { return files.SerializerOf(format) }

// New returns the table of all functions that templates may call.
func New(facts function.Facts) function.Table {
	facts.Serializer = serializer
	f, t := &facts, function.Table{}
	return t.Add(
		alternatives.Functions(f), archive.Functions(f), cmd.Functions(f), config.Functions(f), cp.Functions(f),
		cron.Functions(f), data.Functions(f), defaults.Functions(f), dig.Functions(f), disk.Functions(f),
		dnsutil.Functions(f), docker.Functions(f), mysql.Functions(f), environ.Functions(f), file.Functions(f),
		git.Functions(f), grains.Functions(f), group.Functions(f), hashutil.Functions(f), hosts.Functions(f),
		http.Functions(f), kmod.Functions(f), ldap.Functions(f), locale.Functions(f), log.Functions(f),
		match.Functions(f), mine.Functions(f, t),
		mount.Functions(f), network.Functions(f),
		pillar.Functions(f), pkg.Functions(f), pip.Functions(f), postgres.Functions(f), ps.Functions(f), random.Functions(f),
		saltutil.Functions(f), service.Functions(f), shadow.Functions(f), slsutil.Functions(f), status.Functions(f),
		sys.Functions(f, t), sysctl.Functions(f), system.Functions(f), test.Functions(f, t), timezone.Functions(f),
		user.Functions(f))
}
