package mount

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// optionRules holds the arguments about options that the kernel does not show, or shows in another form.
type optionRules struct {
	Invisible  []string   `sls:"extra_mount_invisible_options"` // never shown
	Keys       []string   `sls:"extra_mount_invisible_keys"`    // shown without a value, or not at all
	IgnoreKeys *value.Map `sls:"extra_mount_ignore_fs_keys"`    // ignored keys by file system
	Translate  *value.Map `sls:"extra_mount_translate_options"` // shown as another option
	HiddenOpts []string   `sls:"hidden_opts"`
	// CopyBindOpts has no effect: a bind mount is compared by the options that the kernel shows for it.
	CopyBindOpts any `sls:"bind_mount_copy_active_opts"`
}

func invisible() []string {
	return strings.Fields(`
		_netdev actimeo bg comment defaults delay_connect direct-io-mode intr loop nointr nobootwait nofail
		password reconnect retry soft auto noauto user users nouser group owner bind rbind nonempty
		transform_symlinks port backup-volfile-servers uid_squash remount`)
}

func invisibleKeys() []string {
	return strings.Fields("actimeo comment credentials direct-io-mode password port retry secretfile")
}

// missing returns the declared options that a mount does not have.
func (r *optionRules) missing(h *host.Host, opts []string, m mounted, fstype string) []string {
	hidden := slices.Concat(invisible(), invisibleKeys(), r.Invisible, r.Keys, split(r.HiddenOpts))
	if fstype == "ramfs" {
		hidden = append(hidden, "size")
	}
	if r.IgnoreKeys != nil {
		if keys, ok := r.IgnoreKeys.Value(fstype).(*value.List); ok {
			for _, key := range keys.Items {
				hidden = append(hidden, value.Str(key))
			}
		}
	}
	have := map[string]bool{}
	for _, opt := range slices.Concat(m.opts, m.superopts) {
		have[sized(opt)] = true
	}
	var missing []string
	for _, opt := range opts {
		key, _, _ := strings.Cut(opt, "=")
		if opt == "" || slices.Contains(hidden, opt) || slices.Contains(hidden, key) || strings.HasPrefix(opt, "x-") {
			continue
		}
		if not, ok := opposite(opt); ok && !have[not] {
			continue // a default, which the kernel does not show
		}
		if fstype == "tmpfs" && usualOfTmpfs(r.shown(h, opt, fstype), have) {
			continue
		}
		if shown := r.shown(h, opt, fstype); !have[shown] && !have[opt] {
			missing = append(missing, opt)
		}
	}
	slices.Sort(missing)
	return missing
}

// opposite returns the option that the kernel shows if a default option does not apply.
func opposite(opt string) (string, bool) {
	switch opt {
	case "exec", "suid", "dev", "atime", "diratime":
		return "no" + opt, true
	case "async":
		return "sync", true
	}
	return "", false
}

// usualOfTmpfs reports whether an option of a tmpfs is a default that the kernel does not show, or one that it
// shows differently: a size in percent of memory is shown in KiB.
func usualOfTmpfs(opt string, have map[string]bool) bool {
	key, v, _ := strings.Cut(opt, "=")
	shown := func() bool {
		for o := range have {
			if strings.HasPrefix(o, key+"=") {
				return true
			}
		}
		return false
	}
	switch {
	case opt == "mode=1777", opt == "uid=0", opt == "gid=0":
		return !shown()
	case key == "size":
		return strings.HasSuffix(v, "%")
	}
	return false
}

// split returns the single options of a list whose items may be options separated by commas.
func split(opts []string) []string { return strings.Split(strings.Join(opts, ","), ",") }

// shown returns an option in the form that the kernel shows.
func (r *optionRules) shown(h *host.Host, opt, fstype string) string {
	if r.Translate != nil && r.Translate.Has(opt) {
		return value.Str(r.Translate.Value(opt))
	}
	key, v, hasValue := strings.Cut(opt, "=")
	switch {
	case opt == "tcp" || opt == "udp":
		return "proto=" + opt
	case fstype == "cifs" && key == "user":
		return "username=" + v
	case key == "uid" && hasValue:
		if u, ok, err := h.Accounts.User(v); err == nil && ok {
			return fmt.Sprint("uid=", u.UID)
		}
	case key == "gid" && hasValue:
		if g, ok, err := h.Accounts.Group(v); err == nil && ok {
			return fmt.Sprint("gid=", g.GID)
		}
	}
	return sized(opt)
}

var size = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(size|nr_inodes|nr_blocks)=(\d+)([kmgtKMGT]?)$`)
})

// sized converts the value of an option to the form that the kernel shows: sizes in KiB, numbers of inodes and
// blocks in full, and modes without leading zeros.
func sized(opt string) string {
	if key, v, ok := strings.Cut(opt, "="); ok && slices.Contains([]string{"mode", "umask", "fmask", "dmask"}, key) {
		return key + "=" + strings.TrimLeft(v, "0")
	}
	m := size().FindStringSubmatch(opt)
	if m == nil {
		return opt
	}
	n, err := strconv.Atoi(m[2])
	if err != nil {
		return opt
	}
	n *= map[string]int{"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}[strings.ToLower(m[3])]
	if m[1] == "size" {
		return fmt.Sprintf("size=%dk", n>>10)
	}
	return fmt.Sprintf("%s=%d", m[1], n)
}
