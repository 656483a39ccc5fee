package grains

import (
	"bytes"
	"cmp"
	"os"
	"path"
	"runtime"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// kernel sets the output of uname, and the command that lists processes.
func (c *collector) kernel() {
	c.set("ps", "ps -efHww")
	c.set("kernel", cmp.Or(c.machine.line("proc/sys/kernel/ostype"), "Linux"))
	c.set("kernelrelease", c.machine.line("proc/sys/kernel/osrelease"))
	c.set("kernelversion", c.machine.line("proc/sys/kernel/version"))
	c.set("cpuarch", cmp.Or(c.machine.line("proc/sys/kernel/arch"), machineOf[runtime.GOARCH], runtime.GOARCH))
}

// machineOf has the kernel's names of the architectures of Go. Kernels before 6.1 do not have them in /proc.
var machineOf = map[string]string{
	"386": "i686", "amd64": "x86_64", "arm": "armv7l", "arm64": "aarch64", "loong64": "loongarch64",
}

// init sets the name of the first process.
func (c *collector) init() {
	c.set("init", c.initSystem())
}

func (c *collector) initSystem() string {
	if c.machine.exists("run/systemd/system") {
		return "systemd"
	}
	words := strings.Fields(strings.ReplaceAll(c.machine.read("proc/1/cmdline"), "\x00", " "))
	if len(words) == 0 {
		return "unknown"
	}
	if strings.HasSuffix(words[0], "bin/init") {
		return c.initProgram(words[0])
	}
	for _, w := range words {
		switch name := path.Base(w); name {
		case "supervisord", "dumb-init", "tini", "runit":
			return name
		case "my_init":
			return "runit"
		}
	}
	return "unknown"
}

// initProgram distinguishes programs that are all called init by the name that each contains.
func (c *collector) initProgram(name string) string {
	program := strings.ToLower(c.machine.read(name))
	for _, known := range []string{"upstart", "sysvinit", "systemd"} {
		if strings.Contains(program, known) {
			return known
		}
	}
	return "unknown"
}

func (c *collector) selinux() {
	if !c.system.program("selinuxenabled") {
		return
	}
	state := map[string]string{"1": "Enforcing", "0": "Permissive"}[c.machine.line("sys/fs/selinux/enforce")]
	c.set("selinux", value.NewMap("enabled", state != "", "enforced", cmp.Or(state, "Disabled")))
}

// systemd sets version and features without running systemctl: both are in the library that all parts of systemd share,
// the version in its file name.
func (c *collector) systemd() {
	if !c.system.program("systemctl") || !c.system.program("localectl") {
		return
	}
	const prefix = "libsystemd-shared-"
	for _, dir := range []string{"usr/lib/systemd", "lib/systemd", "usr/lib/" + c.triplet() + "/systemd"} {
		for _, name := range c.system.names(dir) {
			version, ours := strings.CutPrefix(name, prefix)
			end := strings.IndexAny(version, ".-")
			if !ours || end < 0 {
				continue
			}
			features := c.system.textWith(dir+"/"+name, "PAM +AUDIT ")
			if features == "" {
				features = c.system.textWith(dir+"/"+name, "PAM -AUDIT ")
			}
			c.set("systemd", value.NewMap("version", version[:end], "features", features))
			return
		}
	}
}

// triplet returns the name of the directory in which Debian keeps libraries of this architecture.
func (c *collector) triplet() string {
	switch machine := c.text("cpuarch"); {
	case strings.HasPrefix(machine, "armv"):
		return "arm-linux-gnueabihf"
	case machine == "ppc64le":
		return "powerpc64le-linux-gnu"
	case machine == "i586" || machine == "i686":
		return "i386-linux-gnu"
	default:
		return machine + "-linux-gnu"
	}
}

// textWith returns the printable text around the marker in a binary file. It searches from the end, since linkers put
// code, which is large, before texts. It assumes that the text is shorter than a kilobyte, so blocks overlap by that
// much.
func (t tree) textWith(name, marker string) string {
	const overlap, size = 1 << 10, 64 << 10
	f, err := os.Open(t.path(name))
	if t.failed(name, err) {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if t.failed(name, err) || !info.Mode().IsRegular() {
		return ""
	}
	block := make([]byte, overlap+size+overlap)
	for end := info.Size(); end > 0; end -= size {
		n, err := f.ReadAt(block, max(0, end-size-overlap))
		_ = t.failed(name, err)
		if at := bytes.Index(block[:n], []byte(marker)); at >= 0 {
			return printable(block[:n], at)
		}
	}
	return ""
}

// printable returns the printable ASCII text around a position.
func printable(block []byte, at int) string {
	special := func(r rune) bool { return r < ' ' || r > '~' }
	from := bytes.LastIndexFunc(block[:at], special) + 1
	text := block[from:]
	if to := bytes.IndexFunc(text, special); to >= 0 {
		text = text[:to]
	}
	return string(text)
}
