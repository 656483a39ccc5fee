package grains

import (
	"cmp"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// process sets facts of the running program and its environment.
func (c *collector) process() {
	c.set("pid", os.Getpid())
	c.set("uid", os.Getuid())
	c.set("username", c.account("etc/passwd", os.Getuid()))
	c.set("gid", os.Getgid())
	c.set("groupname", c.account("etc/group", os.Getgid()))
	path := strings.TrimSpace(c.Getenv("PATH"))
	c.set("path", path)
	c.set("systempath", value.Strings(strings.Split(path, ":")...))
	c.set("shell", cmp.Or(c.Getenv("SHELL"), "/bin/sh"))
	c.set("locale_info", c.locale())
	c.setText("machine_id", cmp.Or(c.machine.line("etc/machine-id"), c.machine.line("var/lib/dbus/machine-id")))
}

// account returns the name of a number in passwd or group. If the account is not in the file, it returns the number.
func (c *collector) account(file string, number int) string {
	text := strconv.Itoa(number)
	for line := range strings.Lines(c.machine.read(file)) {
		if f := strings.Split(line, ":"); len(f) > 2 && f[2] == text {
			return f[0]
		}
	}
	return text
}

// locale returns the locale that Python derives from the environment. Without any locale, Python treats C.UTF-8 as
// American English.
func (c *collector) locale() *value.Map {
	var language, encoding any
	name := cmp.Or(c.Getenv("LC_ALL"), c.Getenv("LC_CTYPE"), c.Getenv("LANG"), "C.UTF-8")
	name, _, _ = strings.Cut(name, "@")
	territory, charset, _ := strings.Cut(name, ".")
	switch {
	case strings.EqualFold(strings.ReplaceAll(name, "-", ""), "c.utf8"):
		language, encoding = "en_US", "UTF-8"
	case territory != "C" && territory != "POSIX":
		language = territory
		if charset = strings.ToUpper(cmp.Or(charset, "ISO8859-1")); charset == "UTF8" {
			charset = "UTF-8"
		}
		encoding = charset
	}
	return value.NewMap("defaultlanguage", language, "defaultencoding", encoding,
		"detectedencoding", "utf-8", "timezone", c.timezone())
}

// timezone returns the present abbreviation of the time zone, such as UTC or CEST.
func (c *collector) timezone() string {
	file := "etc/localtime"
	// The link is absolute and would lead out of a relocated tree.
	if _, zone, ok := strings.Cut(c.system.link(file), "zoneinfo/"); ok {
		file = "usr/share/zoneinfo/" + zone
	}
	zone, err := time.LoadLocationFromTZData("", []byte(c.system.read(file)))
	if err != nil {
		return "UTC"
	}
	name, _ := time.Now().In(zone).Zone()
	return name
}
