package awskms_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish/awskms"
	"github.com/corpus-agent/corpus-agent/artifact/publish/keyring"
	"github.com/corpus-agent/corpus-agent/artifact/publish/roots"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

const arn = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"

// service responds like AWS KMS: JSON over POST, the operation in a header.
type service struct {
	key     crypto.Signer
	usage   string
	denied  bool // every request
	forged  bool // signatures are of other data
	regions []string
	signed  int
}

// start runs the service and configures the SDK for it.
func (s *service) start(t *testing.T) {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	for k, v := range map[string]string{
		"AWS_ENDPOINT_URL_KMS": server.URL, "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI",
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_PROFILE": "", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_MAX_ATTEMPTS": "1",
		"AWS_CONFIG_FILE":  filepath.Join(t.TempDir(), "none"), "AWS_SHARED_CREDENTIALS_FILE": filepath.Join(t.TempDir(),
			"none"),
	} {
		t.Setenv(k, v)
	}
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	scope := strings.Split(r.Header.Get("Authorization"), "/")
	if len(scope) > 2 {
		s.regions = append(s.regions, scope[2])
	}
	var in struct {
		KeyId, MessageType, SigningAlgorithm string
		Message                              []byte
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.KeyId != arn && in.KeyId != "alias/root" {
		s.fail(w, "NotFoundException", "no such key")
		return
	}
	if s.denied {
		s.fail(w, "AccessDeniedException", "not authorized to perform this on the resource")
		return
	}
	switch r.Header.Get("X-Amz-Target") {
	case "TrentService.GetPublicKey":
		der, err := x509.MarshalPKIXPublicKey(s.key.Public())
		if err != nil {
			s.fail(w, "KMSInternalException", err.Error())
			return
		}
		s.answer(w, map[string]any{"KeyId": arn, "KeyUsage": s.usage, "KeySpec": "UNKNOWN", "PublicKey": der})
	case "TrentService.Sign":
		s.sign(w, in.Message, in.MessageType, in.SigningAlgorithm)
	default:
		s.fail(w, "UnknownOperationException", r.Header.Get("X-Amz-Target"))
	}
}

func (s *service) sign(w http.ResponseWriter, digest []byte, kind, algorithm string) {
	var opts crypto.SignerOpts = crypto.SHA256
	want := "ECDSA_SHA_256"
	if _, ok := s.key.(*rsa.PrivateKey); ok {
		opts, want = &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA256}, "RSASSA_PSS_SHA_256"
	}
	if kind != "DIGEST" || algorithm != want || len(digest) != 32 {
		s.fail(w, "ValidationException", "not what this key signs")
		return
	}
	if s.forged {
		digest = bytes.Repeat([]byte{1}, 32)
	}
	sig, err := s.key.Sign(rand.Reader, digest, opts)
	if err != nil {
		s.fail(w, "KMSInternalException", err.Error())
		return
	}
	s.signed++
	s.answer(w, map[string]any{"KeyId": arn, "SigningAlgorithm": algorithm, "Signature": sig})
}

func (s *service) answer(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }

func (s *service) fail(w http.ResponseWriter, kind, message string) {
	w.WriteHeader(http.StatusBadRequest)
	s.answer(w, map[string]string{"__type": kind, "message": message})
}

func p256(t *testing.T, curve elliptic.Curve) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestStoreIsSignedWithKeysInKMS(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]crypto.Signer{"ECC_NIST_P256": p256(t, elliptic.P256()), "RSA_2048": rsaKey} {
		t.Run(name, func(t *testing.T) {
			kms := &service{key: key, usage: "SIGN_VERIFY"}
			kms.start(t)
			// A store whose targets key is in KMS.
			repo := artifacttest.New(t)
			next := repo.Keys
			next.Dir = filepath.Join(t.TempDir(), "next")
			repo.Keys.Remote = func(ref string) (keyring.Signer, error) { return awskms.Open(t.Context(), ref) }
			next.Remote = repo.Keys.Remote
			if _, err := next.Refer("targets", "awskms:"+arn); err != nil {
				t.Fatal(err)
			}
			if _, err := roots.Rotate(t.Context(), repo.Publisher, "targets", next); err != nil {
				t.Fatal(err)
			}
			signed := kms.signed
			repo.Release("myapp", "1", "testing", artifacttest.Files{"app": "1"})
			if kms.signed == signed {
				t.Error("a new project was delegated without the key in KMS")
			}
			if r, err := repo.Host().Resolve("myapp/testing"); err != nil || r.Version != "1" {
				t.Errorf("a host resolves %v, %v", r, err)
			}
			for _, region := range kms.regions {
				if region != "eu-central-1" {
					t.Errorf("the requests went to %s, but the key's ARN has eu-central-1", region)
				}
			}
		})
	}
}

func TestKeyIsReferredToOnce(t *testing.T) {
	kms := &service{key: p256(t, elliptic.P256()), usage: "SIGN_VERIFY"}
	kms.start(t)
	ring := keyring.Ring{Dir: t.TempDir(), Remote: func(ref string) (keyring.Signer, error) {
		return awskms.Open(t.Context(), ref)
	}}
	first, err := ring.Refer("root", "awskms:"+arn)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := ring.Refer("root", "awskms:"+arn); err != nil || again.ID != first.ID {
		t.Errorf("the same key again: %v, %v", again, err)
	}
	keys, err := ring.Keys("root")
	if err != nil || len(keys) != 1 || keys[0].ID != first.ID {
		t.Errorf("the keyring has %v, %v", keys, err)
	}
	list, err := ring.List()
	if err != nil || len(list) != 1 || list[0].Kind != "awskms:"+arn {
		t.Errorf("the keyring lists %v, %v", list, err)
	}
}

func TestKeysThatCannotSignAreRefused(t *testing.T) {
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good := p256(t, elliptic.P256())
	for name, c := range map[string]struct {
		kms  service
		ref  string
		says string
	}{
		"of another curve": {service{key: p256(t, elliptic.P384()), usage: "SIGN_VERIFY"}, arn, "P-384"},
		"Ed25519":          {service{key: edwards, usage: "SIGN_VERIFY"}, arn, "cannot sign metadata"},
		"for encryption":   {service{key: good, usage: "ENCRYPT_DECRYPT"}, arn, "ENCRYPT_DECRYPT"},
		"that is not ours": {service{key: good, usage: "SIGN_VERIFY", denied: true}, arn, "not authorized"},
		"that does not exist": {service{key: good, usage: "SIGN_VERIFY"}, strings.Replace(arn, "1234", "9999", 1),
			"no such key"},
		"without a region":      {service{key: good, usage: "SIGN_VERIFY"}, "alias/root", "no region"},
		"without a name at all": {service{key: good, usage: "SIGN_VERIFY"}, "", "names no key"},
	} {
		t.Run(name, func(t *testing.T) {
			c.kms.start(t)
			_, err := awskms.Open(t.Context(), "awskms:"+c.ref)
			if err == nil || !strings.Contains(err.Error(), c.says) || diag.HintOf(err) == "" {
				t.Errorf("a key %s: %v, want %q and a hint", name, err, c.says)
			}
			if err != nil && strings.Contains(err.Error(), "wJalrXUtnFEMI") {
				t.Error("the error holds credentials")
			}
		})
	}
}

func TestInvalidKMSSignatureIsNotPublished(t *testing.T) {
	kms := &service{key: p256(t, elliptic.P256()), usage: "SIGN_VERIFY"}
	kms.start(t)
	signer, err := awskms.Open(context.Background(), "awskms:"+arn)
	if err != nil {
		t.Fatal(err)
	}
	kms.forged = true
	if _, err := signer.Sign([]byte("metadata")); err == nil ||
		!strings.Contains(err.Error(), "is not a signature of this key") {
		t.Errorf("a forged signature: %v", err)
	}
}
