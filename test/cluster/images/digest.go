package images

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// revisionLabel is the label with the commit that an image was built from.
const revisionLabel = "org.opencontainers.image.revision"

// Digest returns the digest of an image in a registry: that of its index, if it is built for several platforms.
func Digest(ctx context.Context, image string) (string, error) {
	descriptor, err := get(ctx, image)
	if err != nil {
		return "", err
	}
	return descriptor.Digest.String(), nil
}

// CheckRevision returns an error unless an image was built from a commit, by its label.
func CheckRevision(ctx context.Context, image, commit string) error {
	descriptor, err := get(ctx, image)
	if err != nil {
		return err
	}
	built, err := descriptor.Image()
	if err != nil {
		return fmt.Errorf("reading %s: %w", image, err)
	}
	config, err := built.ConfigFile()
	if err != nil {
		return fmt.Errorf("reading %s: %w", image, err)
	}
	revision := config.Config.Labels[revisionLabel]
	if revision == "" || !strings.HasPrefix(commit, revision) {
		return fmt.Errorf("%s was built from %q, not from %s", image, revision, commit)
	}
	return nil
}

func get(ctx context.Context, image string) (*remote.Descriptor, error) {
	reference, err := name.ParseReference(image)
	if err != nil {
		return nil, err
	}
	descriptor, err := remote.Get(reference, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", image, err)
	}
	return descriptor, nil
}
