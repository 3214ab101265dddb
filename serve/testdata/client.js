// Calls a server as an independent client does: node client.js HOST:PORT. What it
// prints is compared with client.txt.
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');
const load = (file) => grpc.loadPackageDefinition(loader.loadSync(__dirname + '/' + file, {keepCase: true, longs: String, defaults: true, oneofs: false}));
const insecure = grpc.credentials.createInsecure();
const service = new (load('inference.proto').inference.GRPCInferenceService)(process.argv[2], insecure);
const health = new (load('health.proto').grpc.health.v1.Health)(process.argv[2], insecure);
const token = new grpc.Metadata();
token.set('authorization', 'Bearer secret');

const call = (on, method, request, metadata = token, options = {}) => new Promise((done) => {
  on[method](request, metadata, options, (err, answer) => {
    console.log(method, err ? `${err.code} ${err.details.replace(/ after .*/, "")}` : show(answer));
    done(answer);
  });
});
const show = (x) => JSON.stringify(x, (key, value) => {
  if (key === 'contents') return undefined; // of tensors whose contents are raw
  if (/^(ns|last_inference)$/.test(key)) return undefined; // times
  if (value && value.type === 'Buffer') return Buffer.from(value.data).toString('hex');
  return value;
});
const x = (datatype, contents) => ({name: 'x', datatype, shape: [1, 5], contents});

(async () => {
  await call(health, 'Check', {}, new grpc.Metadata());
  await call(service, 'ServerLive', {}, new grpc.Metadata());
  await call(service, 'ServerMetadata', {}, new grpc.Metadata());
  await call(service, 'ServerLive', {});
  await call(service, 'ServerReady', {});
  await call(service, 'ServerMetadata', {});
  await call(service, 'ModelReady', {name: 'm'});
  await call(service, 'ModelReady', {name: 'nope'});
  await call(service, 'ModelMetadata', {name: 'm', version: '1'});
  const model_name = 'm';
  for (const [datatype, contents] of [
    ['INT8', {int_contents: [1, 100, 2, 20, 3]}], ['INT16', {int_contents: [1, 100, 2, 20, 3]}], ['INT32', {int_contents: [1, 100, 2, 20, 3]}],
    ['INT64', {int64_contents: [1, 100, 2, 20, 3]}],
    ['UINT8', {uint_contents: [1, 100, 2, 20, 3]}], ['UINT16', {uint_contents: [1, 100, 2, 20, 3]}], ['UINT32', {uint_contents: [1, 100, 2, 20, 3]}],
    ['UINT64', {uint64_contents: [1, 100, 2, 20, 3]}],
    ['FP32', {fp32_contents: [1, 100, 2, 20, 3]}], ['FP64', {fp64_contents: [1, 100, NaN, 20, 3]}],
    ['BYTES', {bytes_contents: ['1', '100', 'high', '', '3'].map((s) => Buffer.from(s))}],
  ]) {
    await call(service, 'ModelInfer', {model_name, id: datatype, inputs: [x(datatype, contents)]});
  }
  const raw = Buffer.from([1, 0, 100, 0, 2, 0, 20, 0, 3, 0]);
  await call(service, 'ModelInfer', {model_name, inputs: [x('INT16')], raw_input_contents: [raw]});
  await call(service, 'ModelInfer', {
    model_name, inputs: [x('INT16'), {name: 'observed', datatype: 'BOOL', shape: [1, 5]}], raw_input_contents: [raw, Buffer.from([1, 0, 1, 1, 1])],
    outputs: [{name: 'log_prob', parameters: {datatype: {string_param: 'FP64'}}}],
  });
  await call(service, 'ModelInfer', {model_name, parameters: {query: {string_param: 'sample'}, seed: {uint64_param: '9007199254740993'}, n_samples: {int64_param: 2}}});
  await call(service, 'ModelInfer', {
    model_name, parameters: {query: {string_param: 'weighted'}, power: {double_param: 2}, exact: {bool_param: true}},
    inputs: [x('FP64', {fp64_contents: [1, 100, 2, 20, 3]}), {name: 'w', datatype: 'FP64', shape: [1, 5], contents: {fp64_contents: [1, 0, 0, 0, 1]}}],
  });
  await call(service, 'ModelInfer', {model_name: 'nope'});
  await call(service, 'ModelInfer', {model_name, inputs: [x('INT8', {int_contents: [1]})]});
  await call(service, 'ModelInfer', {model_name, inputs: [x('INT8', {fp32_contents: [1, 2, 3, 4, 5]})]});
  await call(service, 'ModelInfer', {model_name, inputs: [x('INT16')], raw_input_contents: [raw]}, token, {deadline: Date.now() - 1000});
  await call(service, 'RepositoryIndex', {});
  await call(service, 'RepositoryModelUnload', {model_name});
  await call(service, 'ModelInfer', {model_name, inputs: [x('INT16')], raw_input_contents: [raw]});
  await call(service, 'RepositoryModelLoad', {model_name});
  await call(service, 'RepositoryIndex', {ready: true});
  await call(service, 'ModelStatistics', {name: 'm'});
  await call(service, 'Trace', {});
  const big = Buffer.alloc(2 * 1024 * 1024 * 5);
  const answer = await new Promise((done) => service.ModelInfer({
    model_name, inputs: [{name: 'x', datatype: 'UINT8', shape: [2 * 1024 * 1024, 5]}], raw_input_contents: [big],
  }, token, (err, out) => done(err || out)));
  console.log(answer.details);
  service.close();
  health.close();
})();
