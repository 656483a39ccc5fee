package archive

import (
	"errors"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// options holds the supported part of the options argument, and trim_output.
type options struct {
	strip   int      // number of leading directories to remove from each name
	exclude []string // globs
	trim    int      // maximal number of file names in the changes

	preserve bool // the options request the effect of the argument preserve
}

// prepare validates the arguments and sets dir, format and options.
func (x *extracted) prepare(h *host.Host) error {
	var errs []error
	bad := func(hint, format string, args ...any) {
		errs = append(errs, diag.Argument.Hint(fmt.Errorf(format, args...), "%s", hint))
	}
	for _, p := range []struct{ what, path string }{{"name", x.Name}, {"if_missing", x.IfMissing},
		{"enforce_ownership_on", x.EnforceOwnershipOn}} {
		if p.path != "" && !path.IsAbs(p.path) {
			bad("start it with a slash", "%s is %s, which is not an absolute path", p.what, p.path)
		}
	}
	x.dir = path.Clean(x.Name)
	if x.replaces(h) {
		// the link is removed, so its target does not matter
	} else if info, err := h.Files.Stat(x.dir); err == nil && !info.IsDir() {
		errs = append(errs, host.Unlike(x.dir, info, host.ADirectory,
			"remove it first, in a state that this one requires"))
	}
	if on := x.EnforceOwnershipOn; on != "" && path.Clean(on) != x.dir && !strings.HasPrefix(path.Clean(on), x.dir+"/") {
		bad("name a path below "+x.dir, "enforce_ownership_on is %s, which is not below %s", on, x.dir)
	}
	if x.SkipVerify && x.SkipFilesListVerify {
		bad("keep one of them", "both skip_verify and skip_files_list_verify are set")
	}
	if x.Clean && x.CleanParent {
		bad("keep one of them", "both clean and clean_parent are set")
	}
	if x.CleanParent && x.dir == "/" {
		bad("name a directory of its own", "clean_parent would remove all of the host")
	}
	if x.Password != "" {
		bad("extract it with unzip in a cmd.run state with creates", "encrypted archives are not read here")
	}
	x.checkLimits(bad)
	switch x.format = strings.ToLower(x.ArchiveFormat); x.format {
	case "", "tar", "zip":
	default:
		bad("the formats are tar (of any compression) and zip; for others use a cmd.run state with creates",
			"archive_format is %s", x.ArchiveFormat)
	}
	var err error
	x.options, err = readOptions(x.Options, x.TrimOutput)
	return errors.Join(append(errs, err)...)
}

// readOptions parses the options of tar and unzip that select what is extracted. It ignores those that concern
// compression and output or request the default.
func readOptions(text string, trim any) (o options, err error) {
	words := strings.Fields(strings.NewReplacer(`"`, "", `'`, "").Replace(text))
	for i := 0; i < len(words); i++ {
		name, v, hasValue := strings.Cut(words[i], "=")
		switch name {
		case "--strip-components", "--strip", "--exclude":
			if !hasValue && i+1 < len(words) {
				i++
				v = words[i]
			}
			if name == "--exclude" {
				o.exclude = append(o.exclude, v)
				continue
			}
			if o.strip, err = strconv.Atoi(v); err != nil || o.strip < 0 {
				return o, fmt.Errorf("option %s: %q is not a number of directories", name, v)
			}
		case "--verbose", "--gzip", "--gunzip", "--bzip2", "--xz", "--zstd", "--auto-compress", "--extract":
		case "--preserve-permissions", "--same-permissions":
			o.preserve = true
		default:
			if strings.HasPrefix(name, "--") || strings.Trim(name, "-vxfzjJapoqn") != "" {
				return o, diag.Argument.Hint(fmt.Errorf("the option %s is not supported", words[i]),
					"of the options there are --strip-components and --exclude; for others extract in a cmd.run state with creates")
			}
			o.preserve = o.preserve || strings.Contains(name, "p")
		}
	}
	o.trim, err = trimmed(trim)
	return o, err
}

// trimmed returns the maximal number of file names in the changes.
func trimmed(v any) (int, error) {
	switch n := v.(type) {
	case nil:
		return math.MaxInt, nil
	case bool:
		if n {
			return 100, nil
		}
		return math.MaxInt, nil
	case int:
		if n >= 0 {
			return n, nil
		}
	}
	return 0, fmt.Errorf("trim_output is %s, and true, false or a number was expected", value.Repr(v))
}

// formatOf returns the format that the extension of an archive implies, or "".
func formatOf(name string) string {
	name, _, _ = strings.Cut(name, "?")
	name = strings.ToLower(name)
	for _, ending := range []string{".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz", ".tbz2", ".tb2", ".tar.xz",
		".txz", ".tar.zst", ".tzst"} {
		if strings.HasSuffix(name, ending) {
			return "tar"
		}
	}
	if strings.HasSuffix(name, ".zip") || strings.HasSuffix(name, ".jar") || strings.HasSuffix(name, ".war") {
		return "zip"
	}
	return ""
}
