package processes

import "testing"

// TestCgroupsAreNamedAsTheInitSystemDoes checks the names of control groups inside a container and outside of it.
func TestCgroupsAreNamedAsTheInitSystemDoes(t *testing.T) {
	for _, c := range [][3]string{
		{"/system.slice/app.service", "/init.scope", "/system.slice/app.service"},
		{"/machine.slice/m.scope/payload/system.slice/app.service", "/machine.slice/m.scope/payload/init.scope",
			"/system.slice/app.service"},
		{"/user.slice/user-1.slice/session-1.scope", "/init.scope", "/user.slice/user-1.slice/session-1.scope"},
		{"/../x/system.slice/app.service", "/../x/init.scope", "/system.slice/app.service"},
		{"/elsewhere/system.slice/app.service", "/m/init.scope", "/elsewhere/system.slice/app.service"},
		{"/a", "", "/a"},
	} {
		if got := unitCgroup(c[0], c[1]); got != c[2] {
			t.Errorf("%s, with init in %s, is %s, want %s", c[0], c[1], got, c[2])
		}
	}
}

// TestCgroupOfAProcess checks both versions of control groups, and version 1 in a container.
func TestCgroupOfAProcess(t *testing.T) {
	for text, want := range map[string]string{
		"0::/system.slice/a.service\n":                                         "/system.slice/a.service",
		"9:name=systemd:/system.slice/a.service\n0::/\n":                       "/system.slice/a.service",
		"9:name=systemd:/\n8:pids:/x\n0::/system.slice/a.service\n":            "/system.slice/a.service",
		"9:name=systemd:/system.slice/a.service\n0::/system.slice/a.service\n": "/system.slice/a.service",
		"9:name=systemd:/system.slice/a.service\n8:pids:/system.slice/other\n": "/system.slice/a.service",
		"8:pids:/system.slice/other\n":                                         "",
	} {
		if got := cgroupIn(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
