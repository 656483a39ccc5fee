package packages

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/mholt/archives"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// maxControl is the maximum size of control data in bytes.
const maxControl = 1 << 20

// describeDeb returns the name, version and architecture of a .deb file. They are near the start of the file, so it
// does not read most of the file.
func describeDeb(file io.Reader) (host.Package, error) {
	name, member, err := controlMember(file)
	if err != nil {
		return host.Package{}, err
	}
	plain, err := decompress(name, member)
	if err != nil {
		return host.Package{}, fmt.Errorf("reading %s of a package file: %w", name, err)
	}
	defer plain.Close()
	entries := tar.NewReader(io.LimitReader(plain, 16*maxControl))
	for {
		h, err := entries.Next()
		if err != nil {
			return host.Package{}, fmt.Errorf("reading %s of a package file: %w", name, err)
		}
		if path.Clean(h.Name) == "control" {
			return readControl(entries)
		}
	}
}

var errNoDeb = errors.New("this is not a Debian package file")

// controlMember returns the member of a .deb file that has the control data. A .deb file is an ar(1) archive.
func controlMember(r io.Reader) (name string, member io.Reader, err error) {
	magic := make([]byte, 8)
	if _, err := io.ReadFull(r, magic); err != nil || string(magic) != "!<arch>\n" {
		return "", nil, errNoDeb
	}
	header := make([]byte, 60)
	for {
		if _, err := io.ReadFull(r, header); err != nil {
			return "", nil, errNoDeb
		}
		name := strings.TrimRight(string(header[:16]), " /")
		size, err := strconv.ParseInt(strings.TrimRight(string(header[48:58]), " "), 10, 64)
		if err != nil || size < 0 {
			return "", nil, errNoDeb
		}
		if strings.HasPrefix(name, "control.tar") {
			return name, io.LimitReader(r, size), nil
		}
		if _, err := io.CopyN(io.Discard, r, size+size%2); err != nil {
			return "", nil, errNoDeb
		}
	}
}

func decompress(name string, r io.Reader) (io.ReadCloser, error) {
	switch path.Ext(name) {
	case ".tar":
		return io.NopCloser(r), nil
	case ".gz":
		return gzip.NewReader(r)
	case ".xz":
		return archives.Xz{}.OpenReader(r)
	case ".zst":
		d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(8*maxControl))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	}
	return nil, fmt.Errorf("compression %s is unknown", path.Ext(name))
}

func readControl(r io.Reader) (p host.Package, err error) {
	data, err := io.ReadAll(io.LimitReader(r, maxControl))
	if err != nil {
		return p, fmt.Errorf("reading the control file of a package file: %w", err)
	}
	err = parseDpkg(bytes.NewReader(data), func(found host.Package) { p = found })
	if err == nil && (p.Name == "" || p.Version == "") {
		err = errNoDeb
	}
	return p, err
}

var errNoArchive = errors.New("this is not a package file of this package manager")

// describePkginfo returns the name and version of a package file of pacman or apk. It reads them from the file
// .PKGINFO, which is near the start of the archive.
func describePkginfo(file io.Reader) (host.Package, error) {
	plain, err := uncompressed(file)
	if err != nil {
		return host.Package{}, err
	}
	defer plain.Close()
	const most = 100 // files before .PKGINFO; usually five
	entries := tar.NewReader(io.LimitReader(plain, 64*maxControl))
	for range most {
		h, err := entries.Next()
		if err != nil {
			return host.Package{}, errors.Join(errNoArchive, err)
		}
		if path.Clean(h.Name) == ".PKGINFO" {
			return parsePkginfo(io.LimitReader(entries, maxControl))
		}
	}
	return host.Package{}, errNoArchive
}

// uncompressed opens a compressed archive. It detects the compression by the first bytes.
func uncompressed(file io.Reader) (io.ReadCloser, error) {
	r := bufio.NewReader(file)
	start, err := r.Peek(6)
	if err != nil {
		return nil, errNoArchive
	}
	switch magic := string(start); {
	case strings.HasPrefix(magic, "\x1f\x8b"):
		return gzip.NewReader(r)
	case strings.HasPrefix(magic, "\x28\xb5\x2f\xfd"):
		d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256*maxControl))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	case strings.HasPrefix(magic, "\xfd7zXZ"):
		return archives.Xz{}.OpenReader(r)
	case strings.HasPrefix(magic, "ADB"):
		return nil, errors.New("package files in the format of apk 3 are not read")
	}
	return io.NopCloser(r), nil
}

// parsePkginfo parses lines such as pkgname = foo.
func parsePkginfo(r io.Reader) (host.Package, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return host.Package{}, fmt.Errorf("reading .PKGINFO of a package file: %w", err)
	}
	p := host.Package{State: host.InstalledPackage}
	for line := range strings.SplitSeq(string(data), "\n") {
		key, v, _ := strings.Cut(line, "=")
		v = strings.TrimSpace(v)
		switch strings.TrimSpace(key) {
		case "pkgname":
			p.Name = v
		case "pkgver":
			p.Version = v
		}
	}
	if p.Name == "" || p.Version == "" {
		return p, errNoArchive
	}
	return p, nil
}
