"""Makes shards/*.tfrecord with TensorFlow (tests/unit/data_shards.c): python3 shards.py"""
import tensorflow as tf, numpy as np, glob, os
def ex(d): return tf.train.Example(features=tf.train.Features(feature=d)).SerializeToString()
f=lambda v: tf.train.Feature(float_list=tf.train.FloatList(value=v))
i=lambda v: tf.train.Feature(int64_list=tf.train.Int64List(value=v))
b=lambda v: tf.train.Feature(bytes_list=tf.train.BytesList(value=[v]))
out = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shards"); os.makedirs(out,exist_ok=True)
rng=np.random.default_rng(3)
with tf.io.TFRecordWriter(out+"/plain.tfrecord") as w:
    for k in range(5):
        w.write(ex({"v":f([k,0.5*k,-1.25,1e-3*k]),"ids":i([k,-k,3]),"label":i([k%3]),"target":f([2.5*k])}))
with tf.io.TFRecordWriter(out+"/images.tfrecord") as w:
    for k,n in enumerate(["420.jpg","alpha.png"]):
        w.write(ex({"image/encoded":b(open(out + "/../images/"+n,"rb").read()),"label":i([k])}))
for r in tf.data.TFRecordDataset(out+"/plain.tfrecord"):
    p=tf.io.parse_single_example(r,{"v":tf.io.FixedLenFeature([4],tf.float32),"label":tf.io.FixedLenFeature([],tf.int64)})
    print(p["v"].numpy().tolist(), int(p["label"]))
