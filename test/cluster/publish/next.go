package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// nextImage is the image of memcached that the next release has.
const nextImage = "docker.io/library/memcached:next"

// writeNext writes a bundle that could follow that of the tree, to rehearse what a release may bring: another default
// image of memcached, and a second version of Memcached, which has the same schema and is the one that is stored. The
// manager is that of the tree; it rolls images out at once.
func writeNext(tree, next string) error {
	if err := errors.Join(os.RemoveAll(next), os.CopyFS(next, os.DirFS(tree))); err != nil {
		return err
	}
	err := edit(filepath.Join(next, csvPath), func(csv map[string]any) {
		spec := csv["spec"].(map[string]any)
		var major, minor int
		_, _ = fmt.Sscanf(spec["version"].(string), "%d.%d", &major, &minor)
		version := fmt.Sprintf("%d.%d.0", major, minor+1)
		spec["version"] = version
		csv["metadata"].(map[string]any)["name"] = "memcached-operator.v" + version
		deployments := spec["install"].(map[string]any)["spec"].(map[string]any)["deployments"].([]any)
		pod := deployments[0].(map[string]any)["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
		manager := pod["containers"].([]any)[0].(map[string]any)
		manager["args"] = append(manager["args"].([]any), "--image-delay=1s")
		for _, variable := range manager["env"].([]any) {
			if variable := variable.(map[string]any); variable["name"] == "IMAGE_TAGS" {
				variable["value"] = dropTag(variable["value"].(string), nextImage)
			}
		}
		definitions := spec["customresourcedefinitions"].(map[string]any)
		for _, owned := range definitions["owned"].([]any) {
			if owned := owned.(map[string]any); owned["kind"] == "Memcached" {
				added := maps.Clone(owned)
				added["version"] = "v1"
				definitions["owned"] = append(definitions["owned"].([]any), added)
			}
		}
	})
	if err != nil {
		return err
	}
	return edit(filepath.Join(next, "manifests/cache.example.com_memcacheds.yaml"), func(crd map[string]any) {
		spec := crd["spec"].(map[string]any)
		old := spec["versions"].([]any)[0].(map[string]any)
		added := maps.Clone(old)
		added["name"], old["storage"] = "v1", false
		spec["versions"] = []any{old, added}
	})
}

// dropTag removes an image, which has no digest here, from a value of IMAGE_TAGS.
func dropTag(tags, image string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(tags, ","), func(pair string) bool {
		return strings.HasPrefix(pair, image+"=")
	}), ",")
}

// edit changes a manifest. Memcached's image is replaced in all of them.
func edit(path string, change func(object map[string]any)) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for _, match := range operand.FindAllSubmatch(content, -1) {
		if string(match[1]) == "RELATED_IMAGE_MEMCACHED" {
			content = []byte(strings.ReplaceAll(string(content), "docker.io/"+string(match[2]), nextImage))
		}
	}
	var object map[string]any
	if err := yaml.Unmarshal(content, &object); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	change(object)
	if content, err = yaml.Marshal(object); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}
