package host

import (
	"os"
	"slices"
	"strings"
)

// Which finds a program by its name in the host's own directories.
func (h *Host) Which(name string) (string, bool) { return which(h.Files, name) }

// which looks where the system's tools are, whatever PATH the agent was started with, and then in
// that PATH.
func which(files Files, name string) (string, bool) {
	dirs := systemPath()
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

func systemPath() []string {
	return []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}
}

// toolEnvironment is what the system's own tools get: their messages in English, nothing of the
// agent's.
func toolEnvironment() []string {
	return []string{"PATH=" + strings.Join(systemPath(), ":"), "LC_ALL=C", "HOME=/"}
}
