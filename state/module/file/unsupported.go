package file

import "fmt"

// unsupported holds arguments that are accepted but have no effect.
type unsupported struct {
	Attrs      any `sls:"attrs"`
	SELinux    any `sls:"selinux"`
	WinOwner   any `sls:"win_owner"`
	WinPerms   any `sls:"win_perms"`
	WinDeny    any `sls:"win_deny_perms"`
	WinInherit any `sls:"win_inheritance"`
	WinReset   any `sls:"win_perms_reset"`
}

func (u unsupported) warnings() []string {
	var list []string
	for _, a := range []struct {
		name string
		v    any
		why  string
	}{
		{"attrs", u.Attrs, "attributes of the filesystem are left unchanged"},
		{"selinux", u.SELinux, "a file keeps its label, and a new one gets what the policy says"},
		{"win_owner", u.WinOwner, "this is not Windows"}, {"win_perms", u.WinPerms, "this is not Windows"},
		{"win_deny_perms", u.WinDeny, "this is not Windows"},
	} {
		if a.v != nil {
			list = append(list, fmt.Sprintf("%s is not supported: %s", a.name, a.why))
		}
	}
	return list
}
