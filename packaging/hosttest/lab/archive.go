//go:build hosts

package lab

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// archive is the source of a suite.
type archive struct {
	variable string // variable that sets another mirror
	mirror   string
	script   string // script of debootstrap, if it has none with the suite's name
	keyring  func(dir string) (string, error)
}

func (b Base) archive() archive {
	switch b.Suite {
	case "jammy", "noble":
		return archive{"CORPUS_TEST_UBUNTU_MIRROR", "http://archive.ubuntu.com/ubuntu",
			"/usr/share/debootstrap/scripts/gutsy", ubuntuKeyring}
	}
	return archive{"CORPUS_TEST_DEBIAN_MIRROR", "http://deb.debian.org/debian", "/usr/share/debootstrap/scripts/sid", nil}
}

func (a archive) url() string {
	if mirror := os.Getenv(a.variable); mirror != "" {
		return strings.TrimSuffix(mirror, "/")
	}
	return a.mirror
}

// The package with the keys of Ubuntu's archive. It is not signed, so its digest is checked.
const (
	ubuntuKeys       = "http://archive.ubuntu.com/ubuntu/pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb"
	ubuntuKeysDigest = "36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8"
)

// ubuntuKeyring writes the keys of Ubuntu's archive to dir and returns the path.
func ubuntuKeyring(dir string) (string, error) {
	resp, err := http.Get(ubuntuKeys)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return "", err
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != ubuntuKeysDigest {
		return "", fmt.Errorf("%s has another digest than it should: %x", ubuntuKeys, sum)
	}
	file := filepath.Join(dir, "keys.deb")
	if err := os.WriteFile(file, data, 0o644); err != nil {
		return "", err
	}
	_, err = command("dpkg-deb", "-x", file, dir)
	return filepath.Join(dir, "usr/share/keyrings/ubuntu-archive-keyring.gpg"), err
}
