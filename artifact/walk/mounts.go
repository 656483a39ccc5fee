package walk

import "strings"

// Mount is a line of /proc/self/mountinfo. Its texts are encoded as by the kernel; [MountWord] decodes those that are
// paths.
type Mount struct {
	ID, Parent, Number       string // Number is that of the device, such as 8:1
	Root, Place, Options     string // Root is the directory of the filesystem that is mounted at Place
	Type, Device, SuperBlock string // SuperBlock has the options of the filesystem
}

// Mounts parses /proc/self/mountinfo. It skips malformed lines.
func Mounts(table string) []Mount {
	var all []Mount
	for line := range strings.Lines(table) {
		before, after, ok := strings.Cut(line, " - ") // optional fields are before the dash
		f, g := strings.Fields(before), strings.Fields(after)
		if ok && len(f) >= 6 && len(g) >= 3 {
			all = append(all, Mount{ID: f[0], Parent: f[1], Number: f[2], Root: f[3], Place: f[4], Options: f[5], Type: g[0],
				Device: g[1], SuperBlock: g[2]})
		}
	}
	return all
}

// MountWord decodes a word of /proc/self/mountinfo, /proc/mounts or /proc/swaps, in which blanks are octal escapes.
func MountWord(word string) string {
	if !strings.Contains(word, `\`) {
		return word
	}
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(word)
}
