package packages

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/klauspost/compress/zstd"
	"github.com/mholt/archives"
)

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
