package packages

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
)

const (
	dpkgStatus     = "/var/lib/dpkg/status"
	dpkgStatusDir  = "/var/lib/dpkg/status.d" // in images without dpkg, has a file for each package
	dpkgUpdatesDir = "/var/lib/dpkg/updates"  // updates that dpkg has not merged into the status file yet
)

// readDpkg reads the package database of dpkg. A host without one has no packages.
func readDpkg(files host.Files) (*host.Inventory, error) {
	var d dpkgDatabase
	if err := d.read(files, dpkgStatus); err != nil {
		return nil, err
	}
	if err := d.readDir(files, dpkgStatusDir,
		func(name string) bool { return !strings.HasSuffix(name, ".md5sums") }); err != nil {
		return nil, err
	}
	merged := len(d.packages)
	if err := d.readDir(files, dpkgUpdatesDir, isNumber); err != nil {
		return nil, err
	}
	interrupted := len(d.packages) > merged
	v := host.NewInventory(d.native(), d.latest())
	v.Interrupted = interrupted
	return v, nil
}

type dpkgDatabase struct{ packages []host.Package }

func (d *dpkgDatabase) read(files host.Files, file string) error {
	f, err := files.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the package database: %w", err)
	}
	defer f.Close()
	if err := parseDpkg(f, func(p host.Package) { d.packages = append(d.packages, p) }); err != nil {
		return fmt.Errorf("reading the package database %s: %w", file, err)
	}
	return nil
}

func (d *dpkgDatabase) readDir(files host.Files, dir string, is func(name string) bool) error {
	names, err := files.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the package database: %w", err)
	}
	for _, name := range names {
		if !is(name) {
			continue
		}
		if err := d.read(files, path.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func isNumber(name string) bool { return name != "" && strings.Trim(name, "0123456789") == "" }

// latest returns the last entry of each package, since an update repeats the entry that it changes.
func (d *dpkgDatabase) latest() []host.Package {
	type key struct{ name, arch string }
	at := make(map[key]int, len(d.packages))
	kept := d.packages[:0]
	for _, p := range d.packages {
		k := key{p.Name, p.Arch}
		if i, ok := at[k]; ok {
			kept[i] = p
			continue
		}
		at[k] = len(kept)
		kept = append(kept, p)
	}
	return kept
}

// native returns the architecture of the package dpkg. If dpkg is not installed, as in some images, it returns that of
// the first package with an architecture or, if there is none, that of the agent.
func (d *dpkgDatabase) native() string {
	for _, is := range []func(host.Package) bool{
		func(p host.Package) bool { return p.Name == "dpkg" },
		func(p host.Package) bool { return p.Arch != "" && p.Arch != "all" },
	} {
		if i := slices.IndexFunc(d.packages, is); i >= 0 {
			return d.packages[i].Arch
		}
	}
	switch runtime.GOARCH {
	case "386":
		return "i386"
	case "arm":
		return "armhf"
	case "ppc64le":
		return "ppc64el"
	case "mips64le":
		return "mips64el"
	}
	return runtime.GOARCH
}

// parseDpkg calls yield for each package in a file of stanzas. It uses only the start of a long line, since the fields
// that it parses are short.
func parseDpkg(r io.Reader, yield func(host.Package)) error {
	lines := bufio.NewReaderSize(r, 64<<10)
	var s stanza
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 && line[0] == '\n' {
			s.end(yield)
		} else if len(line) > 0 {
			s.field(line)
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = lines.ReadSlice('\n')
		}
		if errors.Is(err, io.EOF) {
			s.end(yield)
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// stanza is the package that is being read.
type stanza struct {
	host.Package
	stated bool   // it has a status field
	arch   string // of the previous stanza; most are the same
}

// end yields the package and starts the next. A stanza without a status is from a directory of installed packages.
func (s *stanza) end(yield func(host.Package)) {
	if !s.stated {
		s.State = host.InstalledPackage
	}
	if s.Name != "" {
		yield(s.Package)
	}
	*s = stanza{arch: s.arch}
}

// field parses a line.
func (s *stanza) field(line []byte) {
	switch line[0] {
	case 'P':
		if v, ok := fieldValue(line, "Package:"); ok {
			s.Name = string(v)
		} else if v, ok := fieldValue(line, "Provides:"); ok {
			s.Provides = parseProvides(string(v))
		}
	case 'V':
		if v, ok := fieldValue(line, "Version:"); ok {
			s.Version = string(v)
		}
	case 'A':
		if v, ok := fieldValue(line, "Architecture:"); ok {
			if string(v) != s.arch {
				s.arch = string(v)
			}
			s.Arch = s.arch
		}
	case 'S':
		if v, ok := fieldValue(line, "Status:"); ok {
			s.stated = true
			setStatus(&s.Package, v)
		}
	}
}

func fieldValue(line []byte, name string) ([]byte, bool) {
	if len(line) < len(name) || string(line[:len(name)]) != name {
		return nil, false
	}
	return bytes.TrimSpace(line[len(name):]), true
}

// setStatus parses the wanted state and the present state of a package: "install ok installed".
func setStatus(p *host.Package, v []byte) {
	want, rest, _ := bytes.Cut(v, []byte(" "))
	flag, is, _ := bytes.Cut(rest, []byte(" "))
	p.Held, p.Damaged = string(want) == "hold", string(flag) == "reinstreq"
	switch string(is) {
	case "installed", "triggers-pending", "triggers-awaited":
		p.State = host.InstalledPackage
	case "config-files":
		p.State = host.ConfigFiles
	case "half-installed", "unpacked", "half-configured":
		p.State = host.HalfInstalled
	}
}

// parseProvides parses "a, b (= 1.2)" into a and b=1.2.
func parseProvides(v string) []string {
	var names []string
	for item := range strings.SplitSeq(v, ",") {
		name, version, versioned := strings.Cut(strings.TrimSpace(item), "(")
		name = strings.TrimSpace(name)
		if name == "" {
			continue
		}
		if versioned {
			name += "=" + strings.Trim(version, "=) ")
		}
		names = append(names, name)
	}
	return names
}
