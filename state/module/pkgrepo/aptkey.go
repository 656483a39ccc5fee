package pkgrepo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// keyed holds the arguments for the signing key of a repository.
type keyed struct {
	KeyURL        string `sls:"key_url"`
	KeyText       string `sls:"key_text"`
	KeyID         any    `sls:"keyid"` // an ID or a list of IDs
	KeyServer     string `sls:"keyserver"`
	AllowInsecure bool   `sls:"allow_insecure_key"`
	AptKey        any    `sls:"aptkey"` // no effect: apt-key is never used
}

// defaultKeyServer is the key server for keyid.
const defaultKeyServer = "keyserver.ubuntu.com"

func (k *keyed) consistent() error {
	ids := k.keyIDs()
	switch {
	case k.KeyURL != "" && (len(ids) > 0 || k.KeyServer != ""), k.KeyText != "" && (len(ids) > 0 || k.KeyServer != ""),
		k.KeyURL != "" && k.KeyText != "":
		return diag.Repository.Hint(errors.New("the key is given in more than one way"),
			"keep one of key_url, key_text, and keyid with keyserver")
	case !k.AllowInsecure && strings.HasPrefix(strings.TrimSpace(k.KeyURL), "http:"):
		return diag.Repository.Hint(errors.New("the key would come over http, where others could change it"),
			"use https, or set allow_insecure_key")
	}
	return nil
}

// keyIDs returns the IDs in upper-case hexadecimal. YAML parses an ID that starts with 0x as a number.
func (k *keyed) keyIDs() []string {
	var ids []string
	items := []any{k.KeyID}
	if list, ok := k.KeyID.(*value.List); ok {
		items = list.Items
	}
	for _, item := range items {
		switch item := item.(type) {
		case int:
			ids = append(ids, fmt.Sprintf("%08X", item))
		case string:
			ids = append(ids, strings.ToUpper(strings.TrimPrefix(strings.ReplaceAll(item, " ", ""), "0x")))
		}
	}
	return ids
}

func (k *keyed) given() bool { return k.KeyURL != "" || k.KeyText != "" || len(k.keyIDs()) > 0 }

// placeOf returns the path of a repository's key: that of signed-by, or a file in the directory of keys for all
// repositories.
func (k *keyed) placeOf(e entry) string {
	if file := e.option("signed-by"); strings.HasPrefix(file, "/") {
		return file
	}
	var name string
	switch ids := k.keyIDs(); {
	case len(ids) > 0:
		name = ids[0]
	case k.KeyURL != "":
		name = k.KeyURL
	default:
		name = e.uri
	}
	name, _, _ = redact.Login(redact.URLs(name))
	if _, rest, isURL := strings.Cut(name, "://"); isURL {
		name = rest
	}
	name = strings.Trim(regexp.MustCompile(`[^A-Za-z0-9._-]+`).ReplaceAllString(name, "-"), "-.")
	return "/etc/apt/trusted.gpg.d/" + strings.TrimSuffix(strings.TrimSuffix(name, ".asc"), ".gpg") + ".asc"
}

// missing reports whether the key is not installed.
func (k *keyed) missing(h *host.Host, e entry) (bool, error) {
	if !k.given() {
		return false, nil
	}
	data, err := h.Files.ReadFile(k.placeOf(e))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the key of a package repository: %w", err)
	}
	prints, err := fingerprints(data)
	for _, id := range k.keyIDs() {
		if !hasKey(prints, id) {
			return true, nil
		}
	}
	return err != nil, nil // a file that is not a key is replaced
}

func hasKey(prints []string, id string) bool {
	return slices.ContainsFunc(prints, func(p string) bool { return strings.HasSuffix(p, id) })
}

// fetch installs the key in the format that the extension of its file requires: apt reads ASCII armor only from .asc
// files.
func (k *keyed) fetch(ctx context.Context, h *host.Host, sources Sources, env string, e entry) error {
	data, err := k.read(ctx, sources, env)
	if err != nil {
		return err
	}
	file := k.placeOf(e)
	if path.Ext(file) != ".asc" {
		if data, err = dearmor(data); err != nil {
			return err
		}
	}
	if err := h.WriteText(file, string(data)); err != nil {
		return fmt.Errorf("writing the key of a package repository: %w", err)
	}
	mode := fs.FileMode(0o644) // apt reads keys as the user _apt
	return h.Files.Chmod(file, mode)
}

// read returns the key that the arguments name. It returns an error if the data is not a key.
func (k *keyed) read(ctx context.Context, sources Sources, env string) ([]byte, error) {
	var all []byte
	ids := k.keyIDs()
	urls := []string{k.KeyURL}
	if len(ids) > 0 {
		urls = nil
		for _, id := range ids {
			urls = append(urls, keyServerURL(k.KeyServer, id))
		}
	}
	if k.KeyText != "" {
		urls, all = nil, []byte(k.KeyText)
	}
	for _, url := range urls {
		data, err := readAll(ctx, sources, url, env)
		if err != nil {
			return nil, fmt.Errorf("fetching the key of a package repository: %w", err)
		}
		all = append(all, data...)
	}
	prints, err := fingerprints(all)
	if err != nil {
		return nil, fmt.Errorf("the key of a package repository, %s: %w",
			redact.URLs(strings.Join(urls, ", ")), err)
	}
	for _, id := range ids {
		if !hasKey(prints, id) {
			return nil, fmt.Errorf("the key server has sent another key than %s", id)
		}
	}
	return all, nil
}

// keyThere returns an error if key_url cannot be fetched. It does not check keys that are given otherwise.
func (k *keyed) keyThere(ctx context.Context, sources Sources, env string) error {
	if k.KeyURL == "" {
		return nil
	}
	body, err := sources.Open(ctx, k.KeyURL, env)
	if err != nil {
		return diag.Repository.Hint(fmt.Errorf("fetching the key of a package repository, %s: %w",
			redact.URLs(k.KeyURL), err),
			"correct key_url, or see why it cannot be reached")
	}
	return body.Close()
}

// keyServerURL returns the URL of a key on a key server that speaks HKP.
func keyServerURL(server, id string) string {
	if server == "" {
		server = defaultKeyServer
	}
	scheme, name, ok := strings.Cut(server, "://")
	if !ok {
		scheme, name = "hkp", server
	}
	name = strings.TrimRight(name, "/")
	switch {
	case scheme == "hkps":
		scheme = "https"
	case scheme == "hkp" && !strings.Contains(name, ":"):
		scheme, name = "http", name+":11371"
	case scheme == "hkp":
		scheme = "http"
	}
	return fmt.Sprintf("%s://%s/pks/lookup?op=get&options=mr&search=0x%s", scheme, name, id)
}

func readAll(ctx context.Context, sources Sources, url, env string) ([]byte, error) {
	const most = 4 << 20
	r, err := sources.Open(ctx, url, env)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, most))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", redact.URLs(url), err)
	}
	return data, nil
}

// ppaKey returns the fingerprint of the key that signs a personal package archive, which it requests from Launchpad.
func ppaKey(ctx context.Context, sources Sources, ppa string) (string, error) {
	owner, name, _ := strings.Cut(ppa, "/")
	data, err := readAll(ctx, sources, "https://launchpad.net/api/1.0/~"+owner+"/+archive/"+name, "")
	var about struct {
		Fingerprint string `json:"signing_key_fingerprint"`
	}
	if err == nil {
		err = json.Unmarshal(data, &about)
	}
	if err == nil && about.Fingerprint == "" {
		err = errors.New("it does not say with which key the archive is signed")
	}
	if err != nil {
		return "", diag.Repository.Hint(fmt.Errorf("querying Launchpad for ppa:%s: %w", ppa, err),
			"this takes the network; without it, give the archive as a deb line with key_url or key_text")
	}
	return about.Fingerprint, nil
}
