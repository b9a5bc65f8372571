import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONObject;
import com.alibaba.fastjson.parser.Feature;
import com.alibaba.fastjson.serializer.SerializerFeature;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/**
 * One JSON request a line on standard input, one JSON answer a line on standard output.
 *
 * What RocketMQ prints goes to standard error. The end of the input ends the process without a
 * shutdown, so that no JVM outlives the test run that started it.
 */
final class JsonLines {
    interface Handler {
        Object answer(String what, JSONObject request) throws Exception;
    }

    private JsonLines() {
    }

    static void serve(Handler handler) throws Exception {
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.UTF_8));
        answer(out, JSONObject.parseObject("{\"ready\":true}"));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JSONObject request = JSON.parseObject(line, Feature.OrderedField);
            JSONObject reply = new JSONObject(true);
            try {
                reply.put("answer", handler.answer(request.getString("do"), request));
            } catch (Throwable failure) {
                failure.printStackTrace();
                reply.put("error", String.valueOf(failure));
            }
            answer(out, reply);
        }
        Runtime.getRuntime().halt(0);
    }

    private static void answer(PrintStream out, JSONObject reply) {
        out.println(JSON.toJSONString(reply, SerializerFeature.WriteMapNullValue,
            SerializerFeature.DisableCircularReferenceDetect));
        out.flush();
    }
}
