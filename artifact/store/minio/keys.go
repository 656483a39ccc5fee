package minio

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// keys are credentials.
type keys struct{ access, secret, token string }

const whence = "give credentials by MINIO_ACCESS_KEY and MINIO_SECRET_KEY, by AWS_ACCESS_KEY_ID and " +
	"AWS_SECRET_ACCESS_KEY, or by `mc alias set` for the same host"

// findKeys looks for credentials where MinIO's tools look, in this order: MINIO_ACCESS_KEY and MINIO_SECRET_KEY,
// MINIO_ROOT_USER and MINIO_ROOT_PASSWORD, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY with
// AWS_SESSION_TOKEN, and the alias for this server in mc's ~/.mc/config.json, or in
// $MC_CONFIG_DIR.
func findKeys(opts Options) (keys, error) {
	for _, k := range []keys{
		{os.Getenv("MINIO_ACCESS_KEY"), os.Getenv("MINIO_SECRET_KEY"), ""},
		{os.Getenv("MINIO_ROOT_USER"), os.Getenv("MINIO_ROOT_PASSWORD"), ""},
		{os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), os.Getenv("AWS_SESSION_TOKEN")},
		aliasKeys(opts),
	} {
		if k.access != "" && k.secret != "" {
			return k, nil
		}
	}
	return keys{}, errors.New("there are none for this server")
}

// aliasKeys returns the keys that mc has for the server; a missing or foreign file has none.
func aliasKeys(opts Options) keys {
	data, err := walk.ReadGiven(filepath.Join(mcDir(), "config.json"))
	if err != nil {
		return keys{}
	}
	var config struct {
		Aliases map[string]struct{ URL, AccessKey, SecretKey string } `json:"aliases"`
	}
	if json.Unmarshal(data, &config) != nil {
		return keys{}
	}
	server := "https://" + opts.Host
	if opts.Plain {
		server = "http://" + opts.Host
	}
	for _, alias := range config.Aliases {
		if strings.TrimSuffix(alias.URL, "/") == server {
			return keys{access: alias.AccessKey, secret: alias.SecretKey}
		}
	}
	return keys{}
}

func mcDir() string {
	if dir := os.Getenv("MC_CONFIG_DIR"); dir != "" {
		return dir
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".mc")
}
