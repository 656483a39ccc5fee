package remote

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Agent is the program of hosts, as a static binary or as a Debian package.
type Agent struct {
	File     string
	Data     []byte // of the file
	Digest   string // SHA-256 of the file, in hexadecimal
	Package  bool
	Program  string // SHA-256 of the program
	Machine  string // as uname -m calls its architecture
	Revision string // the commit that it was built from; empty if it is not known
}

// program is the main package of the agent.
const program = "github.com/corpus-agent/corpus-agent/cmd/corpus-agent"

// ReadAgent reads the agent from a file.
func ReadAgent(file string) (Agent, error) {
	data, err := walk.ReadGiven(file)
	if err != nil {
		return Agent{}, diag.Program.Hint(fmt.Errorf("reading the agent: %w", err),
			"give --agent FILE, the program or the package (.deb) of corpus-agent")
	}
	a := Agent{File: file, Data: data, Digest: sum(data), Package: bytes.HasPrefix(data, []byte(arMagic))}
	binary := data
	if a.Package {
		binary, err = packaged(data)
	}
	if err == nil {
		err = a.describe(binary)
	}
	if err != nil {
		return Agent{}, diag.Program.Hint(fmt.Errorf("%s is not the agent: %w", file, err),
			"give --agent FILE, the program or the package (.deb) of corpus-agent for Linux")
	}
	return a, nil
}

func (a *Agent) describe(binary []byte) error {
	a.Program = sum(binary)
	f, err := elf.NewFile(bytes.NewReader(binary))
	if err != nil {
		return err
	}
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return err
	}
	if info.Path != program {
		return fmt.Errorf("it is %s", info.Path)
	}
	a.Machine, a.Revision = machine(f.Machine), Revision(info)
	return nil
}

// Revision returns the commit that a program was built from; empty if it is not known.
func Revision(info *buildinfo.BuildInfo) string {
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}

// machine returns the name of an architecture that uname -m prints.
func machine(m elf.Machine) string {
	switch m {
	case elf.EM_X86_64:
		return "x86_64"
	case elf.EM_AARCH64:
		return "aarch64"
	}
	return m.String()
}

func sum(data []byte) string {
	d := sha256.Sum256(data)
	return hex.EncodeToString(d[:])
}

// arMagic begins an archive of ar(1), which a Debian package is; each of its entries has a header of arHeader bytes.
const (
	arMagic  = "!<arch>\n"
	arHeader = 60
)

// packaged returns the program in a Debian package.
func packaged(data []byte) ([]byte, error) {
	for rest := data[len(arMagic):]; len(rest) >= arHeader; {
		name := strings.TrimRight(strings.TrimSpace(string(rest[:16])), "/")
		size, err := strconv.Atoi(strings.TrimSpace(string(rest[48:58])))
		if rest = rest[arHeader:]; err != nil || size < 0 || size > len(rest) {
			return nil, errors.New("the package is damaged")
		}
		if compressed, is := strings.CutPrefix(name, "data.tar."); is {
			return unpacked(compressed, bytes.NewReader(rest[:size]))
		}
		rest = rest[min(len(rest), size+size%2):]
	}
	return nil, errors.New("the package has no data.tar")
}

// unpacked returns the program in the files of a package.
func unpacked(compressed string, content io.Reader) ([]byte, error) {
	switch compressed {
	case "gz":
		r, err := gzip.NewReader(content)
		if err != nil {
			return nil, err
		}
		return programIn(r)
	case "zst":
		r, err := zstd.NewReader(content)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return programIn(r)
	}
	return nil, fmt.Errorf("the package has its files as data.tar.%s, and not as gz or zst", compressed)
}

// mostProgram is the maximum size of the program, in bytes.
const mostProgram = 128 << 20

func programIn(r io.Reader) ([]byte, error) {
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the package has no /usr/bin/corpus-agent")
		}
		if err != nil {
			return nil, err
		}
		if path.Clean("/"+h.Name) == "/usr/bin/corpus-agent" {
			return io.ReadAll(io.LimitReader(t, mostProgram))
		}
	}
}
