package host

import (
	"os"
	"slices"
	"strings"
)

// Which finds a program by its name in the host's own directories.
func (h *Host) Which(name string) (string, bool) { return Which(h.Files, name) }

// Which looks where the system's tools are, whatever PATH the agent was started with, and then in
// that PATH.
func Which(files Files, name string) (string, bool) {
	dirs := SystemPath()
	for _, dir := range strings.Split(os.Getenv("PATH"), ":") {
		if strings.HasPrefix(dir, "/") && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	files = followed(files) // which program that is, its administrator says
	for _, dir := range dirs {
		file := dir + "/" + name
		if info, err := files.Stat(file); err == nil && info.IsRegular() && info.Mode&0o111 != 0 {
			return file, true
		}
	}
	return "", false
}

func SystemPath() []string {
	return []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}
}

// ToolEnvironment is what the system's own tools get: their messages in English, nothing of the
// agent's.
func ToolEnvironment() []string {
	return []string{"PATH=" + strings.Join(SystemPath(), ":"), "LC_ALL=C", "HOME=/"}
}
