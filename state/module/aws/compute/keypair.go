package compute

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/network"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// keyPair implements boto_ec2.key_present and key_absent. The private key of a new pair is written to a file in
// save_path.
type keyPair struct {
	cloud.Common
	absent bool
	host   *host.Host
	public string        // the text of Public
	Name   string        `sls:"name"`
	Save   string        `sls:"save_path"`
	Public cloud.Content `sls:"upload_public"`
	Env    string        `sls:"__env__"`
}

// Valid implements module.Validated.
func (k *keyPair) Valid() error {
	if !k.absent && (k.Save == "") == (k.Public == "") {
		return diag.Amazon.Hint(errors.New("one of save_path and upload_public is needed"),
			"upload_public takes the public key, save_path the directory for the private half of a new pair")
	}
	return nil
}

// Check implements module.Resource.
func (k *keyPair) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	k.host = h
	return k.Planned(k.look(ctx))
}

// Apply implements module.Resource.
func (k *keyPair) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	k.host = h
	return k.Common.Apply(ctx, h, d)
}

func (k *keyPair) look(ctx context.Context) (*cloud.Plan, error) {
	a, err := k.Cloud.Account(ctx, "ec2", k.Arguments)
	if err != nil {
		return nil, err
	}
	if k.public, err = k.Public.Read(ctx, k.Cloud, k.Env); err != nil {
		return nil, err
	}
	p, client := cloud.NewPlan(), network.EC2Of(a)
	out, err := client.DescribeKeyPairs(ctx, &ec2.DescribeKeyPairsInput{KeyNames: []string{k.Name}})
	there := err == nil && len(out.KeyPairs) > 0
	if err != nil && !cloud.HasCode(err, "InvalidKeyPair.NotFound") {
		return nil, cloud.Failed("reading key pair", k.Name, err)
	}
	switch {
	case there && k.absent:
		p.Remove(sdk.ToString(out.KeyPairs[0].KeyPairId), value.NewMap("key", k.Name))
		p.Then("key pair deleted", func(ctx context.Context) error {
			_, err := client.DeleteKeyPair(ctx, &ec2.DeleteKeyPairInput{KeyName: &k.Name})
			return cloud.Failed("deleting key pair", k.Name, err)
		})
	case there && k.public == "" && !k.absent:
		p.Warnings = append(p.Warnings, cloud.LostSecret(k.host, k.path(), k.key(a),
			"delete the pair with boto_ec2.key_absent, and the next run makes a new one")...)
	case !there && !k.absent:
		if k.public == "" {
			if err := k.Cloud.CheckSecretFile(k.host, k.path(), k.key(a)); err != nil {
				return nil, err
			}
		}
		p.Create(value.NewMap("key", k.Name))
		p.Then("key pair made", func(ctx context.Context) error { return k.create(ctx, a) })
	}
	return p, nil
}

// path returns the path of the file for the private half.
func (k *keyPair) path() string { return cloud.SecretFile(k.Save, k.Name+".pem") }

// key names the key pair in errors. Each region has its own.
func (k *keyPair) key(a *cloud.Account) string {
	return "key pair " + k.Name + " of " + a.Config.Region
}

func (k *keyPair) create(ctx context.Context, a *cloud.Account) error {
	client := network.EC2Of(a)
	if k.public != "" {
		_, err := client.ImportKeyPair(ctx, &ec2.ImportKeyPairInput{KeyName: &k.Name, PublicKeyMaterial: []byte(k.public)})
		return cloud.Failed("importing key pair", k.Name, err)
	}
	path := k.path()
	if _, err := k.host.Files.Lstat(path); err == nil {
		return diag.Path.Hint(fmt.Errorf("%s exists, and is not replaced by the key pair %s", path, k.Name), "move it away")
	}
	ctx, cancel := cloud.Uninterrupted(ctx)
	defer cancel()
	out, err := client.CreateKeyPair(ctx, &ec2.CreateKeyPairInput{KeyName: &k.Name})
	if err != nil {
		return cloud.Failed("making key pair", k.Name, err)
	}
	private := fs.FileMode(0o600)
	err = k.host.Files.Write(path, host.NewFile{Content: strings.NewReader(sdk.ToString(out.KeyMaterial)), Mode: &private,
		UID: -1, GID: -1})
	if err == nil {
		return nil
	}
	_, gone := client.DeleteKeyPair(ctx, &ec2.DeleteKeyPairInput{KeyName: &k.Name}) // its private half is nowhere else
	return errors.Join(cloud.Failed("writing the private half of key pair", k.Name, err),
		cloud.Failed("deleting the key pair again, which is lost,", k.Name, gone))
}
