// What kstatus, by which Flux and others judge resources, makes of objects: a JSON array on standard input, an array of {status, message} on standard output.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

type result struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

func run() error {
	var objects []map[string]any
	if err := json.NewDecoder(os.Stdin).Decode(&objects); err != nil {
		return err
	}
	results := []result{}
	for _, object := range objects {
		computed, err := status.Compute(&unstructured.Unstructured{Object: whole(object).(map[string]any)})
		if err != nil {
			return err
		}
		results = append(results, result{string(computed.Status), computed.Message})
	}
	return json.NewEncoder(os.Stdout).Encode(results)
}

// The API machinery knows int64 where JSON has float64.
func whole(value any) any {
	switch typed := value.(type) {
	case map[string]any:
		for name, each := range typed {
			typed[name] = whole(each)
		}
	case []any:
		for index, each := range typed {
			typed[index] = whole(each)
		}
	case float64:
		if typed == float64(int64(typed)) {
			return int64(typed)
		}
	}
	return value
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
