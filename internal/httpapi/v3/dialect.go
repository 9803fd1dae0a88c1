package v3

import (
	"fmt"
	"strings"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/result"
)

// dialect is what 3.0.3 says in the words of its framework (recorded:
// v3-client-register-weight-text, v3-metrics).
type dialect struct{}

func (dialect) Form(x *httpapi.Exchange, form string, list []result.Mismatch) string {
	signature := signatures[x.Route().Methods[0]+" "+x.Route().Path]
	count := ""
	if len(list) > 1 {
		count = fmt.Sprintf(" with %d errors", len(list))
	}
	return fmt.Sprintf("Validation failed for argument [%d] in %s%s: [%s] ",
		argumentOf(signature, form), fullNames(signature), count, strings.Join(result.FieldErrors(form, list, false), "] ["))
}

func (dialect) Param(_ *httpapi.Exchange, m result.Mismatch) string {
	return "Method parameter '" + m.Name + "': " + result.ParamText(m, false)
}

func (dialect) Decode(e *result.DecodeError) string {
	return result.DecodeText(e, "REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled)")
}

// signatures are the methods of 3.0.3 behind the routes that read a form with more
// than texts in it: it names them when a value is of the wrong type, and says at
// which of their arguments.
var signatures = map[string]string{
	"POST /v3/client/ns/instance":     "Result<String> InstanceOpenApiController.register(InstanceForm,boolean) throws NacosException",
	"DELETE /v3/client/ns/instance":   "Result<String> InstanceOpenApiController.deregister(InstanceForm) throws NacosException",
	"GET /v3/client/ns/instance/list": "Result<List<Instance>> InstanceOpenApiController.list(InstanceListForm) throws Exception",

	"POST /v3/admin/ns/instance":        "Result<String> InstanceControllerV3.register(InstanceForm) throws NacosException",
	"DELETE /v3/admin/ns/instance":      "Result<String> InstanceControllerV3.deregister(InstanceForm) throws NacosException",
	"PUT /v3/admin/ns/instance":         "Result<String> InstanceControllerV3.update(InstanceForm) throws NacosException",
	"PUT /v3/admin/ns/instance/partial": "Result<String> InstanceControllerV3.partialUpdateInstance(InstanceForm) throws Exception",
	"GET /v3/admin/ns/instance":         "Result<Instance> InstanceControllerV3.detail(InstanceForm) throws NacosException",
	"GET /v3/admin/ns/instance/list":    "Result<List<? extends Instance>> InstanceControllerV3.list(InstanceListForm) throws NacosException",

	"POST /v3/admin/ns/service":            "Result<String> ServiceControllerV3.create(ServiceForm) throws Exception",
	"PUT /v3/admin/ns/service":             "Result<String> ServiceControllerV3.update(ServiceForm) throws Exception",
	"DELETE /v3/admin/ns/service":          "Result<String> ServiceControllerV3.remove(ServiceForm) throws Exception",
	"GET /v3/admin/ns/service":             "Result<ServiceDetailInfo> ServiceControllerV3.detail(ServiceForm) throws Exception",
	"GET /v3/admin/ns/service/list":        "Result<Object> ServiceControllerV3.list(ServiceListForm,PageForm) throws Exception",
	"GET /v3/admin/ns/service/subscribers": "Result<Page<SubscriberInfo>> ServiceControllerV3.subscribers(ServiceForm,PageForm,AggregationForm) throws Exception",

	"PUT /v3/admin/ns/cluster":                        "Result<String> ClusterControllerV3.update(UpdateClusterForm) throws Exception",
	"PUT /v3/admin/ns/health/instance":                "Result<String> HealthControllerV3.update(UpdateHealthForm) throws NacosException",
	"PUT /v3/admin/ns/ops/switches":                   "Result<String> OperatorControllerV3.updateSwitch(UpdateSwitchForm) throws Exception",
	"GET /v3/admin/ns/client/service/publisher/list":  "Result<List<ClientPublisherInfo>> ClientControllerV3.getPublishedClientList(ClientServiceForm) throws NacosApiException",
	"GET /v3/admin/ns/client/service/subscriber/list": "Result<List<ClientSubscriberInfo>> ClientControllerV3.getSubscribeClientList(ClientServiceForm) throws NacosApiException",

	"PUT /v3/console/ns/instance":            "Result<String> ConsoleInstanceController.updateInstance(InstanceForm) throws NacosException",
	"GET /v3/console/ns/instance/list":       "Result<Page<? extends Instance>> ConsoleInstanceController.getInstanceList(InstanceListForm,PageForm) throws NacosException",
	"POST /v3/console/ns/service":            "Result<String> ConsoleServiceController.createService(ServiceForm) throws Exception",
	"PUT /v3/console/ns/service":             "Result<String> ConsoleServiceController.updateService(ServiceForm) throws Exception",
	"DELETE /v3/console/ns/service":          "Result<String> ConsoleServiceController.deleteService(ServiceForm) throws Exception",
	"GET /v3/console/ns/service":             "Result<ServiceDetailInfo> ConsoleServiceController.getServiceDetail(ServiceForm) throws NacosException",
	"GET /v3/console/ns/service/list":        "Result<Object> ConsoleServiceController.getServiceList(ServiceListForm,PageForm) throws NacosException",
	"GET /v3/console/ns/service/subscribers": "Result<Page<SubscriberInfo>> ConsoleServiceController.subscribers(ServiceForm,PageForm,AggregationForm) throws Exception",
	"PUT /v3/console/ns/service/cluster":     "Result<String> ConsoleServiceController.updateCluster(UpdateClusterForm) throws Exception",
}

// argumentOf returns the index of the argument that is the form.
func argumentOf(signature, form string) int {
	_, rest, _ := strings.Cut(signature, "(")
	list, _, _ := strings.Cut(rest, ")")
	for n, name := range strings.Split(list, ",") {
		if strings.EqualFold(name, form) {
			return n
		}
	}
	return 0
}

// packages are where the classes of the signatures are.
var packages = map[string]string{
	"Result": "com.alibaba.nacos.api.model.v2", "Page": "com.alibaba.nacos.api.model",
	"String": "java.lang", "Object": "java.lang", "Exception": "java.lang", "List": "java.util",
	"NacosException": "com.alibaba.nacos.api.exception", "NacosApiException": "com.alibaba.nacos.api.exception.api",
	"Instance":          "com.alibaba.nacos.api.naming.pojo",
	"ServiceDetailInfo": maintainer, "SubscriberInfo": maintainer, "ClientPublisherInfo": maintainer, "ClientSubscriberInfo": maintainer,
	"InstanceForm": forms, "InstanceListForm": forms, "ServiceForm": forms, "ServiceListForm": forms, "ClientServiceForm": forms,
	"UpdateClusterForm": forms, "UpdateHealthForm": forms, "UpdateSwitchForm": forms,
	"PageForm": "com.alibaba.nacos.core.model.form", "AggregationForm": "com.alibaba.nacos.core.model.form",
	"InstanceOpenApiController": controllers, "InstanceControllerV3": controllers, "ServiceControllerV3": controllers,
	"ClusterControllerV3": controllers, "HealthControllerV3": controllers, "OperatorControllerV3": controllers,
	"ClientControllerV3": controllers, "ConsoleInstanceController": consoles, "ConsoleServiceController": consoles,
}

const (
	maintainer  = "com.alibaba.nacos.api.naming.pojo.maintainer"
	forms       = "com.alibaba.nacos.naming.model.form"
	controllers = "com.alibaba.nacos.naming.controllers.v3"
	consoles    = "com.alibaba.nacos.console.controller.v3.naming"
)

// fullNames writes a signature as Java prints it, with the package of each class.
func fullNames(signature string) string {
	b := []byte("public ")
	for signature != "" {
		end := strings.IndexAny(signature, "<>(),. ")
		if end < 0 {
			end = len(signature)
		}
		if home := packages[signature[:end]]; home != "" {
			b = append(append(b, home...), '.')
		}
		end = min(end+1, len(signature))
		b = append(b, signature[:end]...)
		signature = signature[end:]
	}
	return string(b)
}
