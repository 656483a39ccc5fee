package packages

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/klauspost/compress/zstd"
)

// rpmFile creates the part of an rpm package file that the parser reads.
func rpmFile(kind byte, tags map[uint32]string, epoch uint32) []byte {
	header := func(tags map[uint32]string, epoch uint32) []byte {
		var index, data []byte
		entry := func(tag, of uint32) {
			for _, n := range []uint32{tag, of, uint32(len(data)), 1} {
				index = binary.BigEndian.AppendUint32(index, n)
			}
		}
		for tag, text := range tags {
			entry(tag, 6)
			data = append(append(data, text...), 0)
		}
		if epoch > 0 {
			entry(rpmEpoch, 4)
			data = binary.BigEndian.AppendUint32(data, epoch)
		}
		whole := []byte{0x8e, 0xad, 0xe8, 1, 0, 0, 0, 0}
		whole = binary.BigEndian.AppendUint32(whole, uint32(len(index)/16))
		whole = binary.BigEndian.AppendUint32(whole, uint32(len(data)))
		return append(append(whole, index...), data...)
	}
	lead := append([]byte{0xed, 0xab, 0xee, 0xdb, 3, 0, 0, kind}, make([]byte, 88)...)
	signatures := append(header(map[uint32]string{1000: "12345"}, 0), 0, 0) // six bytes, filled up to eight
	return append(append(lead, signatures...), header(tags, epoch)...)
}

func fooTags() map[uint32]string {
	return map[uint32]string{rpmName: "foo", rpmVersion: "1.0", rpmRelease: "2", rpmArch: "noarch"}
}

func TestDescribeRPM(t *testing.T) {
	for _, epoch := range []uint32{0, 3} {
		p, err := describeRPM(bytes.NewReader(rpmFile(0, fooTags(), epoch)))
		want := host.Package{Name: "foo", Version: map[uint32]string{0: "1.0-2", 3: "3:1.0-2"}[epoch], Arch: "noarch"}
		if err != nil || p.Name != want.Name || p.Version != want.Version || p.Arch != want.Arch {
			t.Errorf("got %+v, %v", p, err)
		}
	}
	whole := rpmFile(0, fooTags(), 0)
	for n := range whole {
		if p, err := describeRPM(bytes.NewReader(whole[:n])); err == nil {
			t.Fatalf("the first %d bytes are taken for %+v", n, p)
		}
	}
	for name, data := range map[string][]byte{"a source package": rpmFile(1, fooTags(), 0),
		"no name": rpmFile(0, map[uint32]string{rpmVersion: "1"}, 0), "text": []byte("no package")} {
		if p, err := describeRPM(bytes.NewReader(data)); err == nil {
			t.Errorf("%s is parsed as %+v", name, p)
		}
	}
}

// archive packs a signature and then .PKGINFO.
func archive(t testing.TB, info string, compress func([]byte) []byte) []byte {
	var plain bytes.Buffer
	w := tar.NewWriter(&plain)
	for _, f := range [][2]string{{".SIGN.RSA.x", "signature"}, {".PKGINFO", info}} {
		if err := w.WriteHeader(&tar.Header{Name: f[0], Size: int64(len(f[1])), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(f[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return compress(plain.Bytes())
}

func gzipped(data []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(data) // into memory
	_ = w.Close()
	return out.Bytes()
}

func zstandard(data []byte) []byte {
	w, _ := zstd.NewWriter(nil) // fails only for invalid options
	return w.EncodeAll(data, nil)
}

const pkginfo = "# made by a test\npkgname = foo\npkgver = 1:1.0-1\ndepend = bar\n"

func TestDescribePkginfo(t *testing.T) {
	for name, compress := range map[string]func([]byte) []byte{"gzip": gzipped, "zstd": zstandard, "none": bytes.Clone} {
		p, err := describePkginfo(bytes.NewReader(archive(t, pkginfo, compress)))
		if err != nil || p.Name != "foo" || p.Version != "1:1.0-1" {
			t.Errorf("%s: got %+v, %v", name, p, err)
		}
	}
	for name, data := range map[string][]byte{
		"no version": archive(t, "pkgname = foo\n", gzipped), "text": []byte("no package at all"), "nothing": nil,
		"apk 3": []byte("ADBd1234567"), "cut": archive(t, pkginfo, gzipped)[:40],
	} {
		if p, err := describePkginfo(bytes.NewReader(data)); err == nil {
			t.Errorf("%s is parsed as %+v", name, p)
		}
	}
}

func FuzzPackageFiles(f *testing.F) {
	f.Add(rpmFile(0, fooTags(), 7))
	f.Add(archive(f, pkginfo, gzipped))
	f.Add(archive(f, pkginfo, zstandard))
	f.Fuzz(func(t *testing.T, data []byte) {
		if p, err := describeRPM(bytes.NewReader(data)); err == nil && (p.Name == "" || p.Version == "") {
			t.Errorf("a package without a name or a version: %+v", p)
		}
		if p, err := describePkginfo(bytes.NewReader(data)); err == nil && (p.Name == "" || p.Version == "") {
			t.Errorf("a package without a name or a version: %+v", p)
		}
	})
}
