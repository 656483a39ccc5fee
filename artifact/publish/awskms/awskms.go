// Package awskms signs with keys that never leave AWS KMS.
//
// A reference is awskms:ARN or, if the environment sets the region, awskms:alias/NAME or awskms:KEY-ID. Credentials,
// region and endpoint are those of the SDK: environment, profile, instance role, AWS_ENDPOINT_URL_KMS. The key must be
// an asymmetric signing key, ECC_NIST_P256 or RSA: Ed25519 keys of KMS sign at most 4 KiB, and metadata is longer.
package awskms

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/smithy-go/logging"

	"github.com/corpus-agent/corpus-agent/artifact/publish/keyring"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Prefix starts a reference.
const Prefix = "awskms:"

// timeout is the time limit of one request to KMS, including its retries.
const timeout = 30 * time.Second

// signer is a key in KMS.
type signer struct {
	ctx       context.Context // of the command, since keyring.Signer has no context
	api       *kms.Client
	key       string
	public    crypto.PublicKey
	algorithm types.SigningAlgorithmSpec
}

// Open fetches the public part of a key from KMS. Each signature takes one more request.
func Open(ctx context.Context, ref string) (keyring.Signer, error) {
	key, ok := strings.CutPrefix(ref, Prefix)
	if !ok || key == "" {
		return nil, diag.Keys.Hint(fmt.Errorf("%q names no key of AWS KMS", ref), "write awskms:ARN")
	}
	region := ""
	if a, err := arn.Parse(key); err == nil {
		region = a.Region
	}
	cfg, err := Account(ctx, region, "")
	if err != nil {
		return nil, failed(key, err)
	}
	if cfg.Region == "" {
		return nil, diag.Keys.Hint(fmt.Errorf("AWS KMS key %s: no region is known", key),
			"write the whole ARN, or set AWS_REGION")
	}
	s := &signer{ctx: ctx, api: kms.NewFromConfig(cfg), key: key}
	return s, s.load()
}

// Account returns the AWS configuration of a person or of CI, from all sources of the SDK, including sessions of IAM
// Identity Center (SSO) and of `aws login`. Region and profile override the environment unless they are "".
func Account(ctx context.Context, region, profile string) (aws.Config, error) {
	options := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})}
	if region != "" {
		options = append(options, config.WithRegion(region))
	}
	if profile != "" {
		options = append(options, config.WithSharedConfigProfile(profile))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if missing := (config.SharedConfigProfileNotExistError{}); errors.As(err, &missing) {
		err = diag.Keys.Hint(err, "aws configure list-profiles shows the profiles there are")
	}
	return cfg, err
}

func failed(key string, err error) error {
	return diag.Keys.Hint(fmt.Errorf("AWS KMS key %s: %w", key, err),
		"it takes kms:GetPublicKey and kms:Sign on this key; `aws sts get-caller-identity` shows who you are")
}

func (s *signer) load() error {
	ctx, cancel := context.WithTimeout(s.ctx, timeout)
	defer cancel()
	out, err := s.api.GetPublicKey(ctx, &kms.GetPublicKeyInput{KeyId: aws.String(s.key)})
	if err != nil {
		return failed(s.key, err)
	}
	if out.KeyUsage != types.KeyUsageTypeSignVerify {
		return s.unfit(fmt.Errorf("its usage is %s", out.KeyUsage))
	}
	s.public, err = x509.ParsePKIXPublicKey(out.PublicKey)
	if err != nil {
		return s.unfit(err)
	}
	switch public := s.public.(type) {
	case *ecdsa.PublicKey:
		if public.Curve.Params().BitSize != 256 {
			return s.unfit(fmt.Errorf("it is of curve %s", public.Curve.Params().Name))
		}
		s.algorithm = types.SigningAlgorithmSpecEcdsaSha256
	case *rsa.PublicKey:
		s.algorithm = types.SigningAlgorithmSpecRsassaPssSha256
	default:
		return s.unfit(fmt.Errorf("it is of kind %s", out.KeySpec))
	}
	return nil
}

func (s *signer) unfit(err error) error {
	return diag.Keys.Hint(fmt.Errorf("AWS KMS key %s cannot sign metadata: %w", s.key, err),
		"make one with `aws kms create-key --key-usage SIGN_VERIFY --key-spec ECC_NIST_P256`")
}

// PublicKey is part of keyring.Signer.
func (s *signer) PublicKey() (crypto.PublicKey, error) {
	return s.public, nil
}

// Sign is part of keyring.Signer. Only the digest of the message is sent to KMS.
func (s *signer) Sign(message []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(s.ctx, timeout)
	defer cancel()
	sum := sha256.Sum256(message)
	digest := sum[:]
	out, err := s.api.Sign(ctx, &kms.SignInput{
		KeyId: aws.String(s.key), Message: digest, MessageType: types.MessageTypeDigest, SigningAlgorithm: s.algorithm,
	})
	if err == nil {
		err = s.verify(digest, out.Signature)
	}
	if err != nil {
		return nil, failed(s.key, err)
	}
	return out.Signature, nil
}

// verify returns an error for an invalid signature, so that it is not published.
func (s *signer) verify(digest, sig []byte) error {
	good := false
	switch public := s.public.(type) {
	case *ecdsa.PublicKey:
		good = ecdsa.VerifyASN1(public, digest, sig)
	case *rsa.PublicKey:
		good = rsa.VerifyPSS(public, crypto.SHA256, digest, sig, nil) == nil
	}
	if !good {
		return errors.New("its answer is not a signature of this key")
	}
	return nil
}
