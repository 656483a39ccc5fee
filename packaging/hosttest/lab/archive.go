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

// archive is where a suite comes from.
type archive struct {
	variable string // names another mirror
	mirror   string
	script   string // of debootstrap, where it has none of the suite's name
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

// The package in which Ubuntu publishes the keys of its archive. It comes without a signature, so it
// is known by its digest.
const (
	ubuntuKeys       = "http://archive.ubuntu.com/ubuntu/pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb"
	ubuntuKeysDigest = "36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8"
)

// ubuntuKeyring gets the keys of Ubuntu's archive into dir.
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
