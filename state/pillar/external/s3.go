package external

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Bucket is the location of pillar files in S3, and the access to them.
type Bucket struct {
	Name     string
	Prefix   string // of the keys, without slashes around it; "" for all
	Region   string // "" for that of the host
	Endpoint string // URL of another server than AWS; "" for AWS
	KeyID    string // "" for the credentials of the host
	Key      string
	// PathStyle has the name of the bucket in paths; nil for the default of the server.
	PathStyle *bool
}

// Buckets reads buckets.
type Buckets interface {
	// Objects calls add with each object below the prefix of a bucket, in the order of their keys, which do not include
	// the prefix. It stops at the first error of add, and if the objects have more than limit bytes.
	Objects(ctx context.Context, b Bucket, limit int64, add func(key string, content []byte) error) error
}

// s3 compiles the pillar in a bucket, which has a top file of its own.
func (w World) s3(ctx context.Context, argument any) (any, error) {
	p, err := parameters(argument, "bucket", "key", "keyid", "verify_ssl", "location", "multiple_env", "environment",
		"prefix", "service_url", "kms_keyid", "s3_cache_expire", "s3_sync_on_update", "path_style", "https_enable")
	if err != nil {
		return nil, err
	}
	bucket, err := w.bucket(p)
	if err != nil {
		return nil, err
	}
	if w.Buckets == nil {
		return nil, diag.External.Hint(errors.New("this program reads no buckets"), "use corpus-agent")
	}
	env, _ := p.Value("environment").(string)
	if env == "" {
		env = "base"
	}
	if value.Truth(p.Value("multiple_env")) {
		bucket.Prefix = path.Join(bucket.Prefix, env)
	}
	place := path.Join("s3:"+bucket.Name, bucket.Prefix)
	files, err := w.objects(ctx, bucket, place)
	if err != nil {
		return nil, err
	}
	return w.Compile(ctx, files, roots.Env{Name: env, Dirs: []string{place}})
}

// objects returns the objects of a bucket as the files of a directory.
func (w World) objects(ctx context.Context, b Bucket, place string) (*memory, error) {
	files, empty := newMemory(), true
	err := w.Buckets.Objects(ctx, b, mostBytes, func(key string, content []byte) error {
		empty = false
		if !files.put(path.Join(place, key), &node{content: content}) {
			return diag.External.Hint(fmt.Errorf("%s is also a directory", key), "give one of them another name")
		}
		return nil
	})
	if err == nil && empty {
		err = diag.External.Hint(fmt.Errorf("there are no objects below s3://%s/%s", b.Name, b.Prefix),
			"correct bucket and prefix, or put a top.sls there")
	}
	return files, err
}

// ownCredentials is the value of key and keyid for the credentials of the instance.
const ownCredentials = "use-instance-role-credentials"

// bucket reads the parameters of a bucket.
func (w World) bucket(p *value.Map) (Bucket, error) {
	text := func(name string) string {
		v := p.Value(name)
		if !value.Truth(v) || v == ownCredentials {
			return ""
		}
		return value.Str(v)
	}
	b := Bucket{Name: text("bucket"), Prefix: strings.Trim(text("prefix"), "/"), Region: text("location"),
		KeyID: text("keyid"), Key: text("key")}
	w.Secret(b.Key)
	if style := p.Value("path_style"); value.Truth(style) {
		b.PathStyle = new(true)
	}
	b.place(text("service_url"), isFalse(p, "https_enable"))
	return b, b.check(isFalse(p, "verify_ssl"))
}

// check returns an error for a bucket that cannot be read with its parameters.
func (b Bucket) check(unverified bool) error {
	switch {
	case b.Name == "":
		return diag.External.Hint(errors.New("it has no bucket"), "write `- s3: {bucket: NAME}`")
	case (b.KeyID == "") != (b.Key == ""):
		return diag.External.Hint(errors.New("only one of keyid and key is given"),
			"give both, or none for the credentials of the host")
	case unverified:
		return diag.External.Hint(errors.New("verify_ssl cannot be turned off: root acts on the data"),
			"name the server's authority in AWS_CA_BUNDLE; a bucket with dots in its name needs no exception")
	}
	return nil
}

// isFalse reports whether a parameter is given and false.
func isFalse(p *value.Map, name string) bool {
	v, given := p.Get(name)
	return given && !value.Truth(v)
}

// place sets the server. The names of AWS's own servers have the region in them.
func (b *Bucket) place(server string, plain bool) {
	name, ours := strings.CutSuffix(server, ".amazonaws.com")
	switch {
	case server == "", ours && name == "s3":
	case ours && len(name) > len("s3.") && (strings.HasPrefix(name, "s3.") || strings.HasPrefix(name, "s3-")):
		if b.Region == "" {
			b.Region = name[len("s3."):]
		}
	case plain:
		b.Endpoint = "http://" + server
	default:
		b.Endpoint = "https://" + server
	}
}
